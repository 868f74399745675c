-- Gives back jobs that were claimed and not started, all in one statement. The attempt that never ran is not counted.
with ours as (
    select job.id
    from unnest(%(ids)s::bigint[], %(versions)s::bigint[]) as held (id, version)
    join queue_job as job on job.id = held.id and job.version = held.version
    where job.worker_id = %(worker)s and job.state = 'running'
    order by job.id
    for no key update of job
), moved as (
    update queue_job as job
    set state = case when job.attempts > 1 then 'retry' else 'pending' end,
        attempts = greatest(job.attempts - 1, 0),
        worker_id = null,
        lease_until = null,
        updated_at = now()
    from ours
    where job.id = ours.id
    returning job.id, job.state, job.version
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, %(worker)s, %(reason)s
    from moved
)
select id, state from moved;
