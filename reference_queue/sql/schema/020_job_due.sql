-- Serves exactly the claim's predicate and order; finished jobs are not in it, however many there are.
create index if not exists queue_job_due on queue_job (priority, run_at, id)
where state in ('pending', 'retry') and tenant is null;
