create table task (
    id bigint generated always as identity primary key,
    key text not null unique,
    state text not null default 'pending',
    worker text,
    attempts integer not null default 0,
    run_at timestamptz not null default now()
)
