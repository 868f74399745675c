-- Which shape this is; a worker refuses to start on another one.
create table queue_schema (
    version integer primary key,
    applied_at timestamptz not null default now()
);
