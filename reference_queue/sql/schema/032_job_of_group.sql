-- Finds the head of a group: the unfinished job that was added first. The expression is on purpose: ordered by the bare id, the
-- planner could also walk the primary key through all finished jobs, or prefer to read the whole table.
create index if not exists queue_job_of_group on queue_job (group_key, (id + 0))
where group_key is not null and state in ('pending', 'retry', 'running', 'paused', 'reconcile');
