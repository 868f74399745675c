-- What the server shows of itself: sessions, waits, transactions, write-ahead log, dead rows, locks. One row.
select
    activity.*,
    base.xact_commit as commits, base.xact_rollback as rollbacks, base.deadlocks, base.blks_read as blocks_read,
    wal.wal_bytes::float8 as wal_bytes, wal.wal_records, wal.wal_fpi as wal_full_pages,
    tables.n_dead_tup as dead_rows, tables.n_live_tup as live_rows, tables.autovacuum_count as autovacuums,
    locks.held as locks_held, locks.awaited as locks_awaited
from (
    select
        count(*) filter (where backend_type = 'client backend') as connections,
        count(*) filter (where state = 'active' and datname = current_database() and pid <> pg_backend_pid()) as active,
        count(*) filter (where state like 'idle in transaction%%' and datname = current_database()) as idle_in_transaction,
        count(*) filter (where wait_event_type = 'Lock' and datname = current_database()) as waiting_for_lock,
        count(*) filter (where wait_event_type = 'LWLock' and datname = current_database()) as waiting_for_lwlock,
        count(*) filter (where wait_event_type = 'IO' and datname = current_database()) as waiting_for_disk,
        count(*) filter (where usename = %(worker_role)s and datname = current_database()) as worker_sessions,
        coalesce(max(age(backend_xmin)), 0) as xmin_age,
        coalesce(extract(epoch from clock_timestamp() - min(xact_start) filter (where pid <> pg_backend_pid())), 0)::float8
            as longest_transaction_seconds
    from pg_stat_activity
) as activity
cross join (select * from pg_stat_database where datname = current_database()) as base
cross join pg_stat_wal as wal
left join (select * from pg_stat_user_tables where relid = to_regclass(%(table)s)) as tables on true
cross join (
    select count(*) filter (where granted) as held, count(*) filter (where not granted) as awaited from pg_locks
) as locks;
