-- The jobs whose leases are over, as of now.
select id
from queue_job
where state = 'running' and lease_until <= now();
