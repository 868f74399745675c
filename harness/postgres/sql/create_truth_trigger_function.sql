-- Records and announces one row operation. It runs as the harness's role, because the subject's role may own nothing, and it never
-- fails the subject's own statement: an expression of the mapping that errors is itself recorded.
create function queueproof.record() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, {search_path}
set client_min_messages = notice
as $record$
declare
    was queueproof.mapped;
    is_ queueproof.mapped;
    job_ text;
    key_ text;
    worker_ integer := coalesce(nullif(current_setting('qp.worker', true), ''), '0');
    failed text;
    seq_ bigint;
    change_ text;
begin
    begin
        if tg_op <> 'INSERT' then
            select {expressions} into was from (select (old).*) as {alias};
        end if;
        if tg_op <> 'DELETE' then
            select {expressions} into is_ from (select (new).*) as {alias};
        end if;
    exception when others then
        failed := sqlstate || ' ' || sqlerrm;
    end;
    job_ := coalesce(is_.job, was.job);
    key_ := coalesce(is_.key, was.key);
    if tg_op = 'DELETE' and failed is null then
        is_.state := case when was.state in ('done', 'dead', 'paused', 'reconcile') then was.state else {deleted} end;
    end if;
    insert into queueproof.truth (
        xid, pid, worker, app, job, key,
        old_state, old_owner, old_token, old_lease, old_attempts, old_run_at,
        new_state, new_owner, new_token, new_lease, new_attempts, new_run_at,
        deleted, error, transaction_at, statement_at, wall_at
    ) values (
        pg_current_xact_id(), pg_backend_pid(), worker_, current_setting('application_name'), job_, key_,
        was.state, was.owner, was.token, was.lease_until, was.attempts, was.run_at,
        is_.state, is_.owner, is_.token, is_.lease_until, is_.attempts, is_.run_at,
        tg_op = 'DELETE', failed, transaction_timestamp(), statement_timestamp(), clock_timestamp()
    ) returning seq into seq_;
    if worker_ <> 0 then
        change_ := queueproof.change(
            was.state, was.owner, was.token, was.lease_until, was.attempts,
            is_.state, is_.owner, is_.token, is_.lease_until, is_.attempts, tg_op = 'DELETE', transaction_timestamp()
        );
        raise notice 'queueproof!%', jsonb_build_object(
            'seq', seq_, 'xid', pg_current_xact_id()::text::bigint, 'change', change_,
            'key', key_, 'job', job_, 'worker', worker_,
            'place', nullif(split_part(current_setting('qp.writes', true), ' ', 2), '')::integer
        );
    end if;
    return null;
end
$record$
