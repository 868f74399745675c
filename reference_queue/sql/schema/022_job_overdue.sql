-- By age alone, for the claim that now and then takes what has waited longest whatever its priority.
create index if not exists queue_job_overdue on queue_job (run_at, id)
where state in ('pending', 'retry') and tenant is null;
