-- Stops a chosen worker's statement after its snapshot was taken. The harness holds the advisory lock exclusively to close the gate.
create function queueproof.hold_at_snapshot() returns trigger
language plpgsql
security definer
set search_path = pg_catalog
set lock_timeout = 0
as $hold$
declare
    worker_ integer := coalesce(nullif(current_setting('qp.worker', true), ''), '0');
begin
    if worker_ <> 0 then
        perform pg_advisory_lock_shared({snapshot_class}, worker_);
        perform pg_advisory_unlock_shared({snapshot_class}, worker_);
    end if;
    return null;
end
$hold$
