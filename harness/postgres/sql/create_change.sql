-- What a transition was, in the protocol's words. The one place where it is decided: for a notice, for a gate, and for the net
-- effect of a whole transaction. A null state is a row that was not there; a deleted row arrives with the state its deletion means.
create function queueproof.change(
    old_state text, old_owner text, old_token text, old_lease timestamptz, old_attempts integer,
    new_state text, new_owner text, new_token text, new_lease timestamptz, new_attempts integer, was_deleted boolean,
    at timestamptz
) returns text
language sql
immutable
set search_path = pg_catalog
as $$
    select case
        when old_state is null then 'enqueue'
        when was_deleted and old_state in ('done', 'dead', 'paused', 'reconcile') then 'retire'
        when new_state = 'deleted' then 'retire'
        when new_state = 'running' and old_state <> 'running' then 'claim'
        when new_state = 'running' and new_owner is not null and new_owner is distinct from old_owner then 'claim'
        when new_state = 'running' and new_token is not null and new_token is distinct from old_token then 'claim'
        -- Without a token, a lease that had ended and begins anew is a grant, though the owner's name be the same as before.
        when new_state = 'running' and new_token is null and old_lease <= at and new_lease > old_lease then 'claim'
        -- With neither, one more attempt at a job that was running already is the only sign of a grant to the same name.
        when new_state = 'running' and coalesce(new_token, old_token) is null and coalesce(new_lease, old_lease) is null
            and new_attempts > old_attempts then 'claim'
        when new_state = 'running' and new_lease is distinct from old_lease then 'renew'
        when new_state = 'done' then 'complete'
        when new_state in ('dead', 'paused', 'reconcile') then 'fail'
        when new_state = 'retry' and old_state = 'running' then 'fail'
        when new_state = 'pending' and old_state = 'running' then 'release'
        else 'other'
    end
$$
