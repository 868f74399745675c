grant select on queue_payload to queue_work;
