-- What our schema is said to be, when there is one of that name, and the triggers that would go with it.
select
    obj_description(place.oid, 'pg_namespace') as told,
    array(
        select format('trigger %I on %s', made.tgname, made.tgrelid::regclass)
        from pg_trigger as made
        join pg_proc as runs on runs.oid = made.tgfoid
        where runs.pronamespace = place.oid and not made.tgisinternal and made.tgparentid = 0
        order by 1
    ) as triggers
from pg_namespace as place
where place.nspname = 'queueproof'
