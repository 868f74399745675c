-- The queue's own numbers for a scrape, from the views.
select 'age' as metric, kind as label, oldest_seconds as value from queue_age where tenant is null
union all
select 'orphans', '', count(*) from queue_orphans
union all
select 'backlog', coalesce(last_error_class, 'none'), sum(jobs) from queue_backlog group by 2;
