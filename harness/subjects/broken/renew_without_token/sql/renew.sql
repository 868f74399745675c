-- Broken: neither the version nor the owner is looked at. The heartbeat: all jobs that a worker holds, in one statement. For each it says what has become of it:
-- renewed; busy (another session has the row locked: try again at the next beat, the others are not held up);
-- over (the lease has ended, or the longest run time is reached: it is not renewed, though nobody took it yet);
-- lost (another grant or an operator has the job now: stop, and write nothing).
-- The clock is read after the lock was obtained, so that no wait can carry a renewal over the lease's end.
with held as (
    select unnest(%(ids)s::bigint[]) as id, unnest(%(versions)s::bigint[]) as version
), ours as (
    select job.id, job.version, job.lease_until, job.granted_at
    from queue_job as job
    join held on held.id = job.id
    where job.state = 'running'
), locked as materialized (
    select job.id, job.lease_until > clock_timestamp() and job.lease_until < job.granted_at + %(longest_run)s::interval as may
    from queue_job as job
    join held on held.id = job.id
    where job.state = 'running'
    order by job.id
    for no key update of job skip locked
), renewed as (
    update queue_job as job
    set lease_until = least(clock_timestamp() + %(lease)s::interval, job.granted_at + %(longest_run)s::interval),
        renewals = job.renewals + 1,
        updated_at = now()
    from locked
    where job.id = locked.id and locked.may
    returning job.id
)
select held.id,
    case
        when renewed.id is not null then 'renewed'
        when ours.id is null then 'lost'
        when locked.id is null then 'busy'
        else 'over'
    end as fate
from held
left join ours on ours.id = held.id
left join locked on locked.id = held.id
left join renewed on renewed.id = held.id;
