-- Of a table and its partitions, those that hold rows themselves.
select oid::regclass::text as name
from pg_class
where oid = any (select to_regclass(each)::oid from unnest(%(tables)s::text[]) as each) and relkind = 'r'
