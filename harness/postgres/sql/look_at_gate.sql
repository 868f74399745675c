-- Who waits at a gate, and at which place of it: the backends whose request for the gate's advisory lock is not granted.
select
    (l.objid::bigint %% {places_apart})::integer as worker, (l.objid::bigint / {places_apart})::integer as place,
    a.pid, a.state, a.wait_event_type, a.wait_event, a.backend_xid::text as xid, a.query
from pg_locks as l
join pg_stat_activity as a using (pid)
where l.locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database())
    and not l.granted and l.classid::bigint = %(gate)s and l.objid::bigint %% {places_apart} = any(%(workers)s)
order by l.objid
