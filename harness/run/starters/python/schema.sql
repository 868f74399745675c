create table jobs (
    id          bigint generated always as identity primary key,
    payload     jsonb not null,
    status      text not null default 'new' check (status in ('new', 'busy', 'done', 'failed')),
    worker      text,
    version     int not null default 0,
    lease_until timestamptz
);
create index jobs_open on jobs (id) where status in ('new', 'busy');
