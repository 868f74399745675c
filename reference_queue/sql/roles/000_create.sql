-- Groups without a login; a service's own role is made a member of one of them.
do $$
declare
    name text;
begin
    foreach name in array array['queue_enqueue', 'queue_work', 'queue_operate', 'queue_read', 'queue_retain'] loop
        if not exists (select from pg_roles where rolname = name) then
            execute format('create role %I nologin', name);
        end if;
    end loop;
end
$$;
