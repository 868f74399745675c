-- The other choice: every job is in the index, finished ones too.
create index queue_job_by_state on queue_job (state, priority, run_at, id);
