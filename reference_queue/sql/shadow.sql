-- What would be claimed next, in order, and nothing is claimed.
select operation_key
from queue_job
where state in ('pending', 'retry') and run_at <= now()
order by priority, run_at, id
limit %(most)s::bigint;
