-- Which job stood in the way of an enqueue: the one with its operation key, or the active one with its business key.
-- No row when that one has ended meanwhile: then the enqueue is tried again.
select id, operation_key, state, operation_key = %(key)s as same_operation
from queue_job
where operation_key = %(key)s
    or (business_key = %(business_key)s and state in ('pending', 'retry', 'running', 'paused', 'reconcile'))
order by same_operation desc
limit 1;
