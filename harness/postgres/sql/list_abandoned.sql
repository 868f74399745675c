-- Databases and roles of runs that were killed: a run that lives shows its token as an application name.
select
    made.kind,
    made.name::text
from (
    select
        'database' as kind,
        datname as name,
        substr(datname, length('queueproof_') + 1, 8) as token
    from pg_database
    where datname ~ '^queueproof_[0-9a-f]{8}_' and pg_get_userbyid(datdba) = current_user and datname <> current_database()
    union all
    select
        'role',
        rolname,
        substr(rolname, length('queueproof_worker_') + 1, 8)
    from pg_roles
    where rolname ~ '^queueproof_worker_[0-9a-f]{8}$' and pg_has_role(oid, 'MEMBER')
) as made
where not exists (select from pg_stat_activity where application_name = 'queueproof ' || made.token)
order by made.kind, made.name
