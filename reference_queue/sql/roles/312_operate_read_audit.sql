grant select on queue_audit to queue_operate;
