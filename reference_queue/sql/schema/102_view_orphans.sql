-- Running, but the lease is over, and nobody has taken it over yet. More than a few, or for longer than a lease: no worker
-- for that kind is alive.
create or replace view queue_orphans as
select id as job_id, operation_key, kind, tenant, worker_id, version, phase, attempts, lease_until,
    extract(epoch from now() - lease_until)::float8 as over_for_seconds
from queue_job
where state = 'running' and lease_until <= now();
