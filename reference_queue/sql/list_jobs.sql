select id, operation_key, kind, tenant, state, version, phase, attempts, worker_id, lease_until, last_error_class,
    last_error_code, last_error_reason, updated_at
from queue_job
where state = %(state)s
order by updated_at, id
limit 1000;
