select pg_terminate_backend(pid)
from pg_stat_activity
where
    datname = current_database()
    and pid <> pg_backend_pid()
    and usesysid is not null
    and (usename = current_user or usename ^@ 'queueproof_worker')
    and pg_has_role(usesysid, 'USAGE')
