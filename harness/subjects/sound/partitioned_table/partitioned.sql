create table task (
    id bigint generated always as identity,
    key text not null,
    state text not null default 'pending',
    worker text,
    version bigint not null default 0,
    attempts integer not null default 0,
    run_at timestamptz not null default now(),
    lease_until timestamptz,
    error text,
    primary key (id)
) partition by hash (id)
