-- What retention has left: each finished job is in one of the two tables, with all of its audit.
select
    (select count(*) from queue_archive) as archived,
    (select coalesce(sum(jsonb_array_length(audit)), 0) from queue_archive) as archived_audit,
    (select count(*) from queue_job where worker_id = 'filled' and state = 'done') as left_behind;
