-- The server's word about one backend: what it is doing, what it waits for, who blocks it, and whether it has a transaction.
select
    a.pid, a.state, a.wait_event_type, a.wait_event, a.backend_xid::text as xid,
    pg_blocking_pids(a.pid) as blocked_by, left(a.query, 120) as query
from pg_stat_activity as a
where a.pid = %(pid)s
