-- How our jobs stand, at one snapshot. Ages are by the job's next due time here; those by its first one come from the trace.
select
    count(*) as total,
    count(*) filter (where state in ('pending', 'retry') and runnable) as due,
    count(*) filter (where state in ('pending', 'retry') and not runnable) as scheduled,
    count(*) filter (where state = 'running') as running,
    count(*) filter (where state in ('done', 'deleted')) as done,
    count(*) filter (where state = 'dead') as dead,
    count(*) filter (where state in ('paused', 'reconcile')) as set_aside,
    coalesce(extract(epoch from clock_timestamp() - min(run_at) filter (where state in ('pending', 'retry') and runnable)), 0)::float8
        as oldest_due_seconds,
    min(key) filter (where state in ('pending', 'retry', 'running')) as oldest_unfinished,
    count(*) filter (where state = 'running' and lease_until < clock_timestamp()) as lease_over,
    count(*) filter (where state = 'running' and lease_until < clock_timestamp() and not owner = any (%(alive)s::text[])) as orphans
from (
    select
        ({state})::text as state,
        ({key})::text as key,
        coalesce(({owner})::text, '') as owner,
        ({run_at})::timestamptz as run_at,
        ({lease_until})::timestamptz as lease_until,
        coalesce(({run_at})::timestamptz <= clock_timestamp(), true) as runnable
    from {source}
    where starts_with(({key})::text, %(prefix)s::text)
) as job;
