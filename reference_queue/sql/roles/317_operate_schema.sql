grant select on queue_schema to queue_operate;
