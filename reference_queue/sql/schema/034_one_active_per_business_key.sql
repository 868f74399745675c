-- At most one job per business key that is not finished. Every state that can run again is in it, so that a retry
-- never collides with a job that was added meanwhile.
create unique index if not exists queue_job_one_active_per_business_key on queue_job (business_key)
where business_key is not null and state in ('pending', 'retry', 'running', 'paused', 'reconcile');
