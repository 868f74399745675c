-- Finds what comes before a job in its group.
create index if not exists queue_job_of_group on queue_job (group_key, id)
where group_key is not null and state in ('pending', 'retry', 'running', 'paused', 'reconcile');
