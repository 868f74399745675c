-- Each tenant that has jobs gets the highest cap, which is what it had until now: none.
insert into queue_tenant (tenant, cap)
select distinct tenant, 1000 from queue_job where tenant is not null
on conflict do nothing;
