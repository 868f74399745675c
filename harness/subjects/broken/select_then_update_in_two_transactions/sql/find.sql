-- The jobs that are due, locked until this transaction ends.
select id
from queue_job
where state in ('pending', 'retry') and tenant is null and run_at <= now() and kind = any (%(kinds)s::text[])
order by priority, run_at, id
limit %(count)s
for update skip locked;
