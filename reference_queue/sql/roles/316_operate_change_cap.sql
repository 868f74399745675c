grant update (cap) on queue_tenant to queue_operate;
