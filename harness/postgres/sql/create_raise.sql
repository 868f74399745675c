-- Makes the server raise an error at a chosen change of a job of ours, the first few times. The times are counted by a sequence,
-- because a number drawn from it is not given back by the rollback that follows.
create function queueproof.{fault}() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, {search_path}
as $raise$
declare
    was queueproof.mapped;
    is_ queueproof.mapped;
begin
    if coalesce(nullif(current_setting('qp.worker', true), ''), '0') = '0' then
        return coalesce(new, old);
    end if;
    select {expressions} into was from (select (old).*) as {alias};
    if tg_op = 'DELETE' then
        is_ := was;
        is_.state := {deleted};
    else
        select {expressions} into is_ from (select (new).*) as {alias};
    end if;
    if queueproof.change(
        was.state, was.owner, was.token, was.lease_until, was.attempts,
        is_.state, is_.owner, is_.token, is_.lease_until, is_.attempts, tg_op = 'DELETE', transaction_timestamp()
    ) = '{change}' and exists (select from queueproof.enqueued as e where e.key = was.key) then
        if nextval('queueproof.{fault}_raised') <= {times} then
            raise exception using errcode = '{sqlstate}', message = 'raised by queueproof: {sqlstate}';
        end if;
    end if;
    return coalesce(new, old);
end
$raise$
