-- How long attempts took, from the grant to its end, per kind. Attempts that were lost are not ends.
select kind, count(*) as attempts,
    percentile_cont(0.5) within group (order by seconds) as p50,
    percentile_cont(0.99) within group (order by seconds) as p99,
    max(seconds) as longest
from (
    select job.kind, extract(epoch from ended.at - granted.at)::float8 as seconds
    from queue_audit as granted
    join queue_audit as ended on ended.job_id = granted.job_id and ended.version = granted.version
        and ended.from_state = 'running' and ended.to_state in ('done', 'retry', 'dead', 'paused', 'reconcile')
    join queue_job as job on job.id = granted.job_id
    where granted.to_state = 'running' and granted.at > now() - %(since)s::interval
) as attempt
group by kind
order by kind;
