-- The payload lives apart: no change of state ever rewrites it.
create table queue_payload (
    job_id bigint primary key references queue_job on delete cascade,
    body jsonb not null,
    constraint body_is_bounded check (pg_column_size(body) <= 16 * 1024 * 1024)
);
