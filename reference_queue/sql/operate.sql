-- An operator's move. It counts only if the job still is as the operator saw it: state, version and lease. The version is
-- raised, so whoever holds the job loses it at his next write or heartbeat. The phase stays: the next attempt acts on it.
with before as (
    select id, state, worker_id
    from queue_job
    where id = %(id)s and state = %(expected_state)s and version = %(expected_version)s
        and lease_until is not distinct from %(expected_lease)s::timestamptz
        and state = any (%(from_states)s::text[])
    for update
), moved as (
    update queue_job as job
    set state = %(to_state)s,
        version = job.version + 1,
        attempts = case when %(fresh_attempts)s then 0 else job.attempts end,
        recoveries = case when %(fresh_attempts)s then 0 else job.recoveries end,
        run_at = case when %(fresh_attempts)s then now() else job.run_at end,
        phase = coalesce(%(phase)s, job.phase),
        remote_id = coalesce(%(remote_id)s, job.remote_id),
        worker_id = null,
        lease_until = null,
        finished_at = case when %(to_state)s in ('pending', 'retry') then null else now() end,
        updated_at = now()
    from before
    where job.id = before.id
    returning job.id, job.state, job.version, before.state as from_state
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, from_state, state, version, %(operator)s, %(reason)s
    from moved
)
select id, state, version from moved;
