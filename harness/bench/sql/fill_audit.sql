-- The three rows of audit that each finished job has.
insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason, at)
select id, from_state, to_state, step.version, 'filled', reason, finished_at
from queue_job
cross join (
    values (null, 'pending', 0, 'enqueued'), ('pending', 'running', 1, 'claimed'), ('running', 'done', 1, 'completed')
) as step (from_state, to_state, version, reason)
where state = 'done';
