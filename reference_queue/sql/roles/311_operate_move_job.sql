grant update (state, run_at, attempts, version, worker_id, lease_until, recoveries, phase, remote_id, updated_at, finished_at) on queue_job to queue_operate;
