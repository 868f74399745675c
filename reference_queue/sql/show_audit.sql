select at, from_state, to_state, version, worker_id, reason
from queue_audit
where job_id = %(id)s
order by id;
