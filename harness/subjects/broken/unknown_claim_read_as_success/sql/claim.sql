-- Of the jobs that were picked. Hands out the right to process up to n due jobs until the lease's end. One statement, so one short transaction; only
-- what it returns has been claimed. The candidates are locked under the limit, inside a CTE: that way no plan can run the
-- limit twice (a sub-select in IN can be), and no two claimers wait for each other. The n is written into the text, because
-- with a bind parameter there the server would plan the statement anew each time.
-- A job with a group key waits until those of its key that were added before it have ended; one that is paused or with a
-- person holds its key. Jobs of tenants are claimed by claim_of_tenants.sql.
with candidate as materialized (
    select id, state
    from queue_job
    where id = any (%(ids)s::bigint[]) and state in ('pending', 'retry') and tenant is null and run_at <= now() and kind = any (%(kinds)s::text[])
        and (group_key is null or (
            group_key not in (select busy.group_key from queue_job as busy where busy.state = 'running' and busy.group_key is not null)
            and id = (
                select head.id
                from queue_job as head
                where head.group_key = queue_job.group_key and head.state in ('pending', 'retry', 'running', 'paused', 'reconcile')
                order by head.id + 0
                limit 1
            )
        ))
    order by priority, run_at, id
    limit 1 /* batch */
    for update skip locked
), granted as (
    update queue_job as job
    set state = 'running',
        worker_id = %(worker)s,
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
