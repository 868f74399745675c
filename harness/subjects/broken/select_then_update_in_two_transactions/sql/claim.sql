-- Broken: marks the jobs that were found a moment ago, whatever has become of them.
with granted as (
    update queue_job as job
    set state = 'running',
        worker_id = %(worker)s,
        granted_at = now(),
        lease_until = now() + %(lease)s::interval,
        version = job.version + 1,
        attempts = job.attempts + 1,
        updated_at = now()
    where job.id = any (%(ids)s::bigint[]) and job.kind = any (%(kinds)s::text[])
    returning job.*
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'pending', state, version, worker_id, 'claimed'
    from granted
)
select id, operation_key, kind, version, attempts, max_attempts, phase, remote_id, group_key, tenant, run_at, true as may_call
from granted
order by priority, run_at, id;
