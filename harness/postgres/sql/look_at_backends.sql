-- Every backend in this database that is not ours, with as much of its statement as the server keeps.
select a.pid, a.state, a.backend_xid::text as xid, a.wait_event_type, a.wait_event, pg_blocking_pids(a.pid) as blocked_by,
    a.query
from pg_stat_activity as a
where a.datname = current_database() and a.application_name not like 'queueproof%%' and a.pid <> pg_backend_pid()
    and a.backend_type = 'client backend'
