-- The same for jobs of tenants: each tenant's head is found at once, however many jobs of full tenants come before it.
create index if not exists queue_job_due_of_tenant on queue_job (tenant, priority, run_at, id)
where state in ('pending', 'retry') and tenant is not null;
