-- Stops a chosen worker's statement after its snapshot was taken. The harness holds the advisory lock exclusively to close the gate.
-- One message of a client may write more than once (a function, several statements in one text), so that the gate has a place for
-- each of its writes: the first, the second, ... A message is told from the next by the time that it came.
create function queueproof.hold_at_snapshot() returns trigger
language plpgsql
security definer
set search_path = pg_catalog
set lock_timeout = 0
as $hold$
declare
    worker_ integer := coalesce(nullif(current_setting('qp.worker', true), ''), '0');
    message text := extract(epoch from statement_timestamp())::text;
    place integer := 1;
begin
    if worker_ <> 0 then
        if split_part(current_setting('qp.writes', true), ' ', 1) = message then
            place := least(split_part(current_setting('qp.writes', true), ' ', 2)::integer + 1, {most_places});
        end if;
        perform set_config('qp.writes', message || ' ' || place, false);
        place := place * {places_apart} + worker_;
        perform pg_advisory_lock_shared({snapshot_class}, place);
        perform pg_advisory_unlock_shared({snapshot_class}, place);
    end if;
    return null;
end
$hold$
