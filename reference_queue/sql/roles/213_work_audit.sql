grant insert (job_id, from_state, to_state, version, worker_id, reason) on queue_audit to queue_work;
