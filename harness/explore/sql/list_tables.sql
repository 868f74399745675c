-- The subject's tables, parents of partitions left out: what is emptied between two schedules.
select c.oid::regclass::text as name
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'queueproof')
    and not exists (select from pg_depend as d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by c.oid
