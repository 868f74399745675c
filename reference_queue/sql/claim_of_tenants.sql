-- The claim for jobs of tenants. A tenant with a permit free offers as many of its due jobs as it has permits free, in their
-- order; the nth of them may take only the nth free permit. So while one claimer has a job locked, that permit is spoken for.
-- Two claimers with different snapshots may still choose one permit: the unique index lets one of them commit, the other
-- statement fails as a whole and is tried again. Tenants that are full are not even looked at, however many jobs they have.
with offer as materialized (
    select head.id, head.priority, head.run_at, free.permits[head.nth] as permit
    from queue_tenant as tenant
    cross join lateral (
        select array_agg(permit order by permit) as permits
        from generate_series(1, tenant.cap) as permit
        where not exists (
            select from queue_job as busy
            where busy.tenant = tenant.tenant and busy.permit = permit.permit and busy.state = 'running'
        )
    ) as free
    cross join lateral (
        select id, priority, run_at, row_number() over (order by priority, run_at, id) as nth
        from (
            select id, priority, run_at
            from queue_job as job
            where job.tenant = tenant.tenant and state in ('pending', 'retry') and run_at <= now()
                and kind = any (%(kinds)s::text[])
                and (group_key is null or (
                    group_key not in (select busy.group_key from queue_job as busy where busy.state = 'running' and busy.group_key is not null)
                    and job.id = (
                        select head.id
                        from queue_job as head
                        where head.group_key = job.group_key and head.state in ('pending', 'retry', 'running', 'paused', 'reconcile')
                        order by head.id + 0
                        limit 1
                    )
                ))
            order by priority, run_at, id
            limit coalesce(cardinality(free.permits), 0)
        ) as due
    ) as head
), candidate as materialized (
    -- one offer after the other, in order, until the limit: no more rows are locked than are taken
    select job.id, job.state, head.permit
    from (select id, permit from offer order by priority, run_at, id) as head
    cross join lateral (
        select id, state
        from queue_job
        where queue_job.id = head.id and state in ('pending', 'retry')
        for update skip locked
    ) as job
    limit 1 /* batch */
), granted as (
    update queue_job as job
    set state = 'running',
        worker_id = %(worker)s,
        permit = candidate.permit,
        granted_at = now(),
        lease_until = now() + %(lease)s::interval,
        version = job.version + 1,
        attempts = job.attempts + 1,
        updated_at = now()
    from candidate
    where job.id = candidate.id
    returning job.*, candidate.state as from_state
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, from_state, state, version, worker_id, 'claimed'
    from granted
)
select id, operation_key, kind, version, attempts, max_attempts, phase, remote_id, group_key, tenant, run_at, true as may_call
from granted
order by priority, run_at, id;
