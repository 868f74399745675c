-- Broken: whoever knows the id completes the job, whether or not it is still theirs.
with moved as (
    update queue_job
    set state = 'done',
        phase = 'result_obtained',
        remote_id = coalesce(%(remote_id)s, remote_id),
        lease_until = null,
        finished_at = now(),
        updated_at = now()
    where id = %(id)s
    returning id, state, version, worker_id
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, worker_id, %(reason)s
    from moved
)
select id, state from moved;
