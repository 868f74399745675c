-- Jobs that others hold for longer than the benchmark lasts.
insert into queue_job (operation_key, state, attempts, version, worker_id, granted_at, lease_until)
select 'running ' || n, 'running', 1, 1, 'filled', now(), now() + interval '1 day'
from generate_series(1, %(jobs)s::int) as n;
