-- A new cap counts from the next claim on; jobs that run keep their permits.
insert into queue_tenant (tenant, cap) values (%(tenant_name)s, %(most_running)s::int)
on conflict (tenant) do update set cap = excluded.cap
returning tenant, cap;
