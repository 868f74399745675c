-- An estimate, and called so: PostgreSQL does not count the rows that SKIP LOCKED skips. Of the first hundred due rows, those
-- whose last change or lock belongs to a transaction that is still open. It takes no lock itself.
select count(*) as locked
from (
    select xmax::text::bigint as locker
    from queue_job
    where state in ('pending', 'retry') and tenant is null and run_at <= now()
    order by priority, run_at, id
    limit 100
) as head
where locker in (select xid::text::bigint %% 4294967296 from pg_snapshot_xip(pg_current_snapshot()) as xid)
    or locker >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint %% 4294967296;
