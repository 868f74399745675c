-- Jobs to ask for, as if they were granted already.
select id, operation_key, kind, version + 1 as version, attempts + 1 as attempts, max_attempts, phase, remote_id, group_key, tenant, run_at,
    true as may_call
from queue_job
where state in ('pending', 'retry') and tenant is null and run_at <= now() and kind = any (%(kinds)s::text[])
order by priority, run_at, id
limit %(count)s;
