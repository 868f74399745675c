-- A tenant's cap, by constraint: a claim takes one of the permits 1 to cap, and no two running jobs have the same one.
-- Leaving the state running gives the permit back; there is no counter that a crash could leave wrong.
create unique index if not exists queue_job_one_running_per_permit on queue_job (tenant, permit)
where state = 'running' and tenant is not null;
