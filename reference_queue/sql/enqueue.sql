-- Safe to repeat after a commit of unknown result: the operation key is made by the client, and the constraint decides.
-- No row comes back when the key is already there; the conflict waits for the other insert, so that answer is true even
-- when the other one rolls back. Runs inside the caller's transaction when there is one.
with added as (
    insert into queue_job (operation_key, kind, priority, run_at, group_key, tenant, max_attempts, business_key)
    values (
        %(key)s, %(kind)s, %(priority)s::int, coalesce(%(run_at)s::timestamptz, now()), %(group)s, %(tenant)s, %(max_attempts)s::int,
        %(business_key)s
    )
    on conflict do nothing
    returning id, state, version
), payload as (
    insert into queue_payload (job_id, body)
    select id, %(body)s::jsonb from added where %(body)s::jsonb is not null
), audited as (
    insert into queue_audit (job_id, from_state, to_state, version, worker_id, reason)
    select id, null, state, version, null, 'enqueued' from added
)
select id from added;
