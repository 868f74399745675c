create table task (
    id bigint generated always as identity primary key,
    key text not null,
    state text not null default 'pending',
    worker text,
    version bigint not null default 0,
    lease_until timestamptz,
    attempts integer not null default 0,
    run_at timestamptz not null default now()
)
