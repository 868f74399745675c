-- Jobs by state, kind and failure class. A class that grows names the dependency to look at.
create or replace view queue_backlog as
select state, kind, tenant, last_error_class, count(*) as jobs
from queue_job
where state not in ('done', 'dead')
group by state, kind, tenant, last_error_class;
