-- Due jobs, as many as are missing. They are younger than those that are there, so order by run_at is the order of arrival.
insert into queue_job (operation_key, run_at)
select gen_random_uuid(), clock_timestamp()
from generate_series(1, %(jobs)s::bigint - (select count(*) from queue_job where state = 'pending'));
