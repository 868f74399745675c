-- Jobs that ended a day ago, of the shape that the protocol leaves.
insert into queue_job (
    operation_key, state, run_at, attempts, version, worker_id, granted_at, phase, created_at, updated_at, finished_at
)
select 'finished ' || n, 'done', at, 1, 1, 'filled', at, 'result_obtained', at, at, at
from generate_series(1, %(jobs)s::int) as n
cross join (select now() - interval '1 day' as at) as moment;
