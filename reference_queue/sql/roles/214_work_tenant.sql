grant select on queue_tenant to queue_work;
