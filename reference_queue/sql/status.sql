select state, count(*) as jobs, count(*) filter (where run_at <= now()) as due,
    min(run_at) filter (where state in ('pending', 'retry') and run_at <= now()) as oldest_due,
    count(*) filter (where state = 'running' and lease_until <= now()) as orphans
from queue_job
group by state
order by state;
