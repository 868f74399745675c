create table jobs (
    id          bigint generated always as identity primary key,
    key         text not null,
    state       text not null default 'pending' check (state in ('pending', 'running', 'done', 'dead')),
    worker      text,
    version     bigint not null default 0,
    lease_until timestamptz,
    run_at      timestamptz not null default now(),
    attempts    int not null default 0
);
create index jobs_pending on jobs (id) where state = 'pending';
create index jobs_leased on jobs (lease_until) where state = 'running';
