-- Broken: back into the queue, whatever became of the completion.
update queue_job
set state = 'retry', lease_until = null, worker_id = null, finished_at = null
where id = %(id)s and attempts < max_attempts;
