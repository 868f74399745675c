-- Each transition of a job, in the same statement that made it. It outlives the job, so it does not refer to it.
create table queue_audit (
    id bigint generated always as identity primary key,
    job_id bigint not null,
    from_state text,
    to_state text not null,
    version bigint not null,
    worker_id text,
    reason text not null,
    at timestamptz not null default clock_timestamp()
);
