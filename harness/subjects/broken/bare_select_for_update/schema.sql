create table jobs (
    id bigint generated always as identity primary key,
    key text not null unique,
    due_at timestamptz not null default now()
);
