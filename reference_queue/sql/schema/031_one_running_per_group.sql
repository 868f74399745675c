-- Serial per group key, by constraint: whatever claimers believe, the second one's commit fails.
create unique index if not exists queue_job_one_running_per_group on queue_job (group_key)
where state = 'running' and group_key is not null;
