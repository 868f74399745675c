create table task (
    id          bigint generated always as identity primary key,
    key         text not null,
    state       text not null default 'pending' check (state in ('pending', 'running', 'done', 'dead')),
    run_at      timestamptz not null default now(),
    worker      text,
    version     bigint not null default 0,
    lease_until timestamptz,
    attempts    int not null default 0,
    error       text,
    check ((state = 'running') = (worker is not null and lease_until is not null))
);
create index task_due on task (run_at, id) where state = 'pending';
create index task_leased on task (lease_until) where state = 'running';
