-- How many jobs were completed since this row of the audit, by the queue's own evidence, and where to go on.
select count(*) filter (where reason = 'completed') as jobs, coalesce(max(id), %(after)s::bigint) as last
from queue_audit
where id > %(after)s::bigint;
