-- What somebody, or we, have made in this database: its type, its name as DROP wants it, and its owner.
-- What belongs to an extension or to a table (a serial's sequence, a row type) goes with it and is not listed.
select
    named.type,
    named.identity,
    pg_get_userbyid(made.owner)::text as owner
from (
    select 'pg_namespace'::regclass as class, oid, nspname as schema, nspowner as owner
    from pg_namespace
    where nspname <> 'public'
    union all
    select 'pg_extension'::regclass, oid, 'public', extowner
    from pg_extension
    where extname <> 'plpgsql'
    union all
    select 'pg_class'::regclass, oid, relnamespace::regnamespace::name, relowner
    from pg_class
    where relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select 'pg_proc'::regclass, oid, pronamespace::regnamespace::name, proowner
    from pg_proc
    union all
    select 'pg_type'::regclass, oid, typnamespace::regnamespace::name, typowner
    from pg_type
    where typtype in ('d', 'e', 'r') or (typtype = 'c' and typrelid in (select oid from pg_class where relkind = 'c'))
) as made
cross join lateral pg_identify_object(made.class, made.oid, 0) as named
where
    made.schema !~ '^pg_'
    and made.schema <> 'information_schema'
    and not exists (
        select
        from pg_depend
        where classid = made.class and objid = made.oid and deptype in ('e', 'i', 'a') and refclassid <> 'pg_namespace'::regclass
    )
order by (named.type <> 'schema'), (named.type <> 'extension'), named.type, named.identity
