-- One row per job: what a claim needs to know, and nothing of the payload. Lower priority numbers run first.
-- fillfactor leaves room on each page, so that heartbeats and phase changes stay on it (HOT).
create table queue_job (
    id bigint generated always as identity primary key,
    operation_key text not null,
    kind text not null default 'default',
    state text not null default 'pending',
    priority integer not null default 0,
    run_at timestamptz not null default now(),
    group_key text,
    tenant text,
    attempts integer not null default 0,
    max_attempts integer not null default 3,
    version bigint not null default 0,
    worker_id text,
    granted_at timestamptz,
    lease_until timestamptz,
    renewals integer not null default 0,
    recoveries integer not null default 0,
    phase text not null default 'not_called',
    remote_id text,
    last_error_class text,
    last_error_code text,
    last_error_reason text,
    last_response_id text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    finished_at timestamptz,
    -- a hash index, because a key may be longer than a b-tree's entry can be; equality is checked on the key itself
    constraint operation_key_is_unique exclude using hash (operation_key with =),
    constraint operation_key_is_short check (octet_length(operation_key) between 1 and 8192),
    constraint state_is_known check (state in ('pending', 'running', 'done', 'retry', 'paused', 'dead', 'reconcile')),
    constraint phase_is_known check (phase in ('not_called', 'call_unknown', 'result_obtained', 'confirming')),
    constraint attempts_are_bounded check (max_attempts >= 1 and attempts between 0 and max_attempts),
    constraint running_has_a_holder check ((state = 'running') = (lease_until is not null) and (state <> 'running' or worker_id is not null)),
    constraint group_key_is_short check (octet_length(group_key) between 1 and 1024),
    constraint tenant_is_short check (octet_length(tenant) between 1 and 256)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);

-- Serves exactly the claim's predicate and order; finished jobs are not in it, however many there are.
create index queue_job_candidate on queue_job (priority, run_at, id) where state in ('pending', 'retry');

-- Serves the search for leases that are over. lease_until is left out on purpose: were it in, each heartbeat would
-- rewrite every index of the row. There are never more running jobs than slots, so reading them all is cheap.
create index queue_job_running on queue_job (priority, run_at, id) where state = 'running';

-- The payload lives apart: no change of state ever rewrites it.
create table queue_payload (
    job_id bigint primary key references queue_job on delete cascade,
    body jsonb not null,
    constraint body_is_bounded check (pg_column_size(body) <= 16 * 1024 * 1024)
);

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

create index queue_audit_job on queue_audit (job_id, id);

-- Which shape this is; a worker refuses to start on another one.
create table queue_schema (
    version integer primary key,
    applied_at timestamptz not null default now()
);

insert into queue_schema (version) values (1);

