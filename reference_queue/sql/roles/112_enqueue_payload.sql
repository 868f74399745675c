grant insert on queue_payload to queue_enqueue;
