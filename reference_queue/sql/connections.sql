-- What is left of max_connections for this role, and what its own limit is (-1: none).
select current_setting('max_connections')::int as most,
    current_setting('superuser_reserved_connections')::int as reserved,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
    (select rolconnlimit from pg_roles where rolname = current_user) as own_limit;
