-- Every privilege that a role has on the queue's tables: on the whole table (column is null), or on single columns.
select relname as "table", null as "column", privilege
from pg_class
cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as privilege
where relnamespace = current_schema()::regnamespace and relname like 'queue\_%%' and relkind in ('r', 'v')
    and has_table_privilege(%(role)s, pg_class.oid, privilege)
union all
select relname, attname, privilege
from pg_class
join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
cross join unnest(array['select', 'insert', 'update', 'references']) as privilege
where relnamespace = current_schema()::regnamespace and relname like 'queue\_%%' and relkind in ('r', 'v')
    and not has_table_privilege(%(role)s, pg_class.oid, privilege)
    and has_column_privilege(%(role)s, pg_class.oid, attname, privilege);
