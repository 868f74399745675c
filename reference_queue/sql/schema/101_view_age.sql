-- How long the oldest runnable job has waited past its run_at. Jobs that are not due yet, and those that run, do not count.
-- When it rises while jobs are completed: more slots. When nothing is completed: the workers stand still.
create or replace view queue_age as
select kind, tenant, count(*) as runnable, extract(epoch from now() - min(run_at))::float8 as oldest_seconds
from queue_job
where state in ('pending', 'retry') and run_at <= now()
group by kind, tenant;
