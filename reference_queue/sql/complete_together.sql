-- complete.sql for several jobs of one worker that ended at about the same time: one statement, one commit. What is not ours
-- any more, or is locked by somebody else, is left out: it goes alone afterwards, and holds up nobody here.
with result as (
    select *
    from unnest(%(ids)s::bigint[], %(versions)s::bigint[], %(remote_ids)s::text[], %(reasons)s::text[]) as result (id, version, remote_id, reason)
), ours as materialized (
    select job.id, result.remote_id, result.reason
    from result
    join queue_job as job on job.id = result.id and job.version = result.version
    where job.worker_id = %(worker)s and job.state = 'running'
    order by job.id
    for no key update of job skip locked
), moved as (
    update queue_job as job
    set state = 'done',
        phase = 'result_obtained',
        remote_id = coalesce(ours.remote_id, job.remote_id),
        lease_until = null,
        finished_at = now(),
        updated_at = now()
    from ours
    where job.id = ours.id
    returning job.id, job.state, job.version, job.worker_id, ours.reason
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, worker_id, reason
    from moved
)
select id from moved;
