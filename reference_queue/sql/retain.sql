-- Archives and deletes the finished jobs among the next n rows by primary key. Only a bounded window is looked at and only
-- its rows are locked, so claims beside it are not held up; "last" is where to go on, also after a crash.
with in_range as (
    select id, state, finished_at
    from queue_job
    where id > %(after)s
    order by id
    limit 1 /* batch */
), finished as (
    select job.*
    from queue_job as job
    join in_range on in_range.id = job.id
    where in_range.state in ('done', 'dead') and in_range.finished_at < now() - %(keep)s::interval
        and job.state in ('done', 'dead')
    order by job.id
    for update of job skip locked
), evidence as (
    delete from queue_audit as audit
    using finished
    where audit.job_id = finished.id
    returning audit.*
), told as (
    -- gathered once: looking through the evidence for each job would take the square of the batch
    select job_id, jsonb_agg(to_jsonb(evidence) - 'job_id' order by id) as audit
    from evidence
    group by job_id
), archived as (
    insert into queue_archive (
        job_id, operation_key, business_key, kind, state, tenant, group_key, attempts, version, worker_id, remote_id,
        last_error_class, last_error_code, created_at, finished_at, audit
    )
    select id, operation_key, business_key, kind, state, tenant, group_key, attempts, version, worker_id, remote_id,
        last_error_class, last_error_code, created_at, finished_at,
        coalesce(told.audit, '[]')
    from finished
    left join told on told.job_id = finished.id
    returning job_id
), deleted as (
    delete from queue_job as job
    using archived
    where job.id = archived.job_id
    returning job.id
)
select (select max(id) from in_range) as last, (select count(*) from deleted) as deleted;
