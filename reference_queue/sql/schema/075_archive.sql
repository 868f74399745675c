-- Evidence of finished jobs, with their audit. The payload is not kept.
create table if not exists queue_archive (
    job_id bigint primary key,
    operation_key text not null,
    business_key text,
    kind text not null,
    state text not null,
    tenant text,
    group_key text,
    attempts integer not null,
    version bigint not null,
    worker_id text,
    remote_id text,
    last_error_class text,
    last_error_code text,
    created_at timestamptz not null,
    finished_at timestamptz,
    archived_at timestamptz not null default now(),
    audit jsonb not null
);
