-- What a person must see before a move.
select id, operation_key, business_key, kind, state, version, phase, attempts, max_attempts, recoveries, worker_id,
    lease_until, lease_until <= now() as lease_is_over, run_at, tenant, group_key, remote_id, last_error_class,
    last_error_code, last_error_reason, last_response_id, created_at, updated_at, finished_at
from queue_job
where id = %(id)s;
