-- repeat until no row changes
-- Backfill: what runs now gets a permit, a thousand jobs at a time.
with missing as (
    select id, tenant
    from queue_job
    where state = 'running' and tenant is not null and permit is null
    order by id
    limit 1000
    for update skip locked
), numbered as (
    select id, row_number() over (partition by tenant order by id)
        + (select coalesce(max(permit), 0) from queue_job as other where other.tenant = missing.tenant and other.state = 'running') as permit
    from missing
)
update queue_job as job set permit = numbered.permit from numbered where job.id = numbered.id;
