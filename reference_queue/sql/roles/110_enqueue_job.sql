grant insert (operation_key, kind, priority, run_at, group_key, tenant, max_attempts, business_key) on queue_job to queue_enqueue;
