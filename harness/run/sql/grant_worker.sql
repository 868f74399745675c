-- Lets the worker role use everything that was installed, and own none of it.
do $$
declare
    place record;
    worker constant name := {role};
begin
    for place in
        select nspname as name from pg_namespace
        where nspname not like 'pg\_%' and nspname not in ('information_schema', 'queueproof')
    loop
        execute format('grant usage on schema %I to %I', place.name, worker);
        execute format('grant select, insert, update, delete on all tables in schema %I to %I', place.name, worker);
        execute format('grant usage, select, update on all sequences in schema %I to %I', place.name, worker);
        execute format('grant execute on all routines in schema %I to %I', place.name, worker);
    end loop;
end
$$
