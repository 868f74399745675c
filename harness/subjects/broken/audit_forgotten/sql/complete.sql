-- Broken: the audit is forgotten.
update queue_job
set state = 'done',
    phase = 'result_obtained',
    remote_id = coalesce(%(remote_id)s, remote_id),
    lease_until = null,
    finished_at = now(),
    updated_at = now()
where id = %(id)s and version = %(version)s and worker_id = %(worker)s and state = 'running' and %(reason)s <> ''
returning id, state;
