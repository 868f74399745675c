-- An attempt failed. The outcome asked for is retry, dead, paused or reconcile. A retry waits base * 2^(attempts - 1), at
-- most cap, less a random part of it (jitter), by the database's clock. With no attempts left, a retry becomes dead when
-- nothing was called or the outside says the effect is absent, and otherwise a person's case.
with moved as (
    update queue_job
    set state = case
            when %(outcome)s <> 'retry' then %(outcome)s
            when attempts < max_attempts then 'retry'
            when phase = 'not_called' or %(absent)s then 'dead'
            else 'reconcile'
        end,
        run_at = case
            when %(outcome)s = 'retry' and attempts < max_attempts then clock_timestamp()
                + least(%(cap)s::interval, %(base)s::interval * power(2, least(attempts, 30) - 1))
                * (1 - %(jitter)s::float8 * random())
            else run_at
        end,
        worker_id = case when %(outcome)s = 'retry' and attempts < max_attempts then null else worker_id end,
        finished_at = case when %(outcome)s = 'retry' and attempts < max_attempts then null else now() end,
        lease_until = null,
        last_error_class = %(error_class)s,
        last_error_code = %(error_code)s,
        last_error_reason = %(error_reason)s,
        last_response_id = %(response_id)s,
        updated_at = now()
    where id = %(id)s and worker_id = %(worker)s and state = 'running'
    returning id, state, version, run_at
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, 'running', state, version, %(worker)s, %(error_class)s || ': ' || %(error_reason)s
    from moved
)
select id, state, run_at from moved;
