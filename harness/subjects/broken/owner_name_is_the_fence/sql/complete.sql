-- Broken: a name is no token. The result is known and the job is done. Accepted after the lease's end as long as nobody took the job over.
with moved as (
    update queue_job
    set state = 'done',
        phase = 'result_obtained',
        remote_id = coalesce(%(remote_id)s, remote_id),
        lease_until = null,
        finished_at = now(),
        updated_at = now()
    where id = %(id)s and worker_id = %(worker)s and state = 'running'
    returning id, state, version, worker_id
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, worker_id, %(reason)s
    from moved
)
select id, state from moved;
