-- Broken: a margin for clocks, on the wrong side. Jobs whose lease is over. Each is granted to the worker that asks, who then acts on the recorded phase; none is simply
-- set back to pending. A job that has used up its attempts ends here when nothing was called (dead), is granted once more
-- only to ask the outside (may_call is false), and when that has failed three times goes to a person (reconcile).
-- Whatever we hold ourselves is left out: a takeover is never from oneself.
with expired as materialized (
    select id,
        worker_id as lost_by,
        attempts >= max_attempts as used_up,
        case
            when attempts < max_attempts then 'running'
            when phase = 'not_called' then 'dead'
            when recoveries < 3 then 'running'
            else 'reconcile'
        end as next_state
    from queue_job
    where state = 'running' and lease_until <= now() + interval '1.9 seconds' and kind = any (%(kinds)s::text[]) and id <> all (%(held)s::bigint[])
    order by priority, run_at, id
    limit 1 /* batch */
    for update skip locked
), moved as (
    update queue_job as job
    set state = next_state,
        worker_id = case next_state when 'running' then %(worker)s else job.worker_id end,
        granted_at = case next_state when 'running' then now() else job.granted_at end,
        lease_until = case next_state when 'running' then now() + %(lease)s::interval end,
        version = job.version + case next_state when 'running' then 1 else 0 end,
        attempts = job.attempts + case when used_up then 0 else 1 end,
        recoveries = job.recoveries + case when used_up and next_state = 'running' then 1 else 0 end,
        finished_at = case next_state when 'running' then null else now() end,
        last_error_class = 'worker_lost',
        last_error_code = null,
        last_error_reason = 'The worker did not renew its lease in time.',
        updated_at = now()
    from expired
    where job.id = expired.id
    returning job.*, lost_by, used_up
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, %(worker)s,
        case
            when state <> 'running' then 'attempts used up, the last one by ' || lost_by
            when used_up then 'taken over from ' || lost_by || ' to ask the outside'
            else 'taken over from ' || lost_by
        end
    from moved
)
select id, operation_key, kind, version, attempts, max_attempts, phase, remote_id, group_key, tenant, run_at,
    not used_up as may_call, state
from moved
order by priority, run_at, id;
