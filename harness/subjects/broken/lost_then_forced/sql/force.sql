-- Broken: the job was called for, so done it must be.
update queue_job
set state = 'done', phase = 'result_obtained', lease_until = null, finished_at = now()
where id = %(id)s;
