-- Stops a chosen worker inside its COMMIT, by the kind of transition, before the commit is durable. Rows of other people's keys pass.
create function queueproof.hold_at_commit() returns trigger
language plpgsql
security definer
set search_path = pg_catalog
set lock_timeout = 0
as $hold$
declare
    worker_ integer := coalesce(nullif(current_setting('qp.worker', true), ''), '0');
    gate integer;
begin
    if worker_ = 0 then
        return null;
    end if;
    for gate in
        select distinct case
            queueproof.change(
                t.old_state, t.old_owner, t.old_token, t.old_lease, t.old_attempts,
                t.new_state, t.new_owner, t.new_token, t.new_lease, t.new_attempts, t.deleted, t.transaction_at
            )
            when 'claim' then {claim_class}
            when 'renew' then {renew_class}
            when 'complete' then {result_class}
            when 'fail' then {result_class}
            when 'release' then {result_class}
        end
        from queueproof.truth as t
        join queueproof.enqueued as e on e.key = t.key
        where t.xid = pg_current_xact_id()
    loop
        if gate is not null then
            perform pg_advisory_lock_shared(gate, worker_);
            perform pg_advisory_unlock_shared(gate, worker_);
        end if;
    end loop;
    return null;
end
$hold$
