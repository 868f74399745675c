-- What may be hidden behind a statement: functions and triggers of the subject's own, row security, unique keys besides the
-- jobs' own, and foreign keys. Each row names one thing and says of which kind it is.
select 'function' as kind, p.proname::text as name, '' as relation
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'queueproof')
union all
select 'trigger', t.tgname, t.tgrelid::regclass::text
from pg_trigger as t
where not t.tgisinternal and t.tgname not like 'queueproof%%'
union all
select 'policy', c.relname, c.oid::regclass::text
from pg_class as c where c.relrowsecurity
union all
select 'foreign key', k.conname, k.conrelid::regclass::text
from pg_constraint as k where k.contype = 'f'
union all
select 'unique key', i.indexrelid::regclass::text, i.indrelid::regclass::text
from pg_index as i
join pg_class as c on c.oid = i.indrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'queueproof') and (i.indisunique or i.indisexclusion)
    and not exists (
        select from pg_attribute as a
        where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[]) and (a.attidentity <> '' or pg_get_serial_sequence(i.indrelid::regclass::text, a.attname) is not null)
    )
