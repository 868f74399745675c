-- Serves the search for leases that are over. lease_until is left out on purpose: were it in, each heartbeat would
-- rewrite every index of the row. There are never more running jobs than slots, so reading them all is cheap.
create index if not exists queue_job_running on queue_job (priority, run_at, id) where state = 'running';
