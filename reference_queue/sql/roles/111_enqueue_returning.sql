grant select (id, operation_key, business_key, state, version) on queue_job to queue_enqueue;
