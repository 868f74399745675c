grant insert on queue_tenant to queue_operate;
