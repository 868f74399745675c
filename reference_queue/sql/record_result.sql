-- The outside has answered, or is being asked to confirm; for handlers that do more after their call than complete.
update queue_job
set phase = %(phase)s, remote_id = coalesce(%(remote_id)s, remote_id), updated_at = now()
where id = %(id)s and version = %(version)s and worker_id = %(worker)s and state = 'running'
returning id;
