-- Broken: an expired job becomes a new one. What its last holder had begun outside is forgotten; nobody is granted it here.
with expired as (
    select id
    from queue_job
    where state = 'running' and lease_until <= now() and kind = any (%(kinds)s::text[]) and id <> all (%(held)s::bigint[])
        and attempts < max_attempts
    order by priority, run_at, id
    limit 1 /* batch */
    for update skip locked
), moved as (
    update queue_job as job
    set state = 'pending',
        phase = 'not_called',
        worker_id = null,
        lease_until = null,
        updated_at = now()
    from expired
    where job.id = expired.id
    returning job.*
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, %(worker)s, 'expired'
    from moved
)
select id, operation_key, kind, version, attempts, max_attempts, phase, remote_id, group_key, tenant, run_at, true as may_call, state
from moved
where %(lease)s::interval is null;
