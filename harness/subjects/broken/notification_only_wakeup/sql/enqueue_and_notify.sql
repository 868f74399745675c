-- Enqueue, and wake whoever listens.
with added as (
    insert into queue_job (operation_key, priority, group_key)
    values (%(key)s::text, coalesce(%(priority)s::int, 0), %(group)s::text)
    returning id, state, version
), audited as (
    insert into queue_audit (job_id, to_state, version, reason)
    select id, state, version, 'enqueued' from added
    returning job_id
)
select pg_notify('queue_wake', '') from audited;
