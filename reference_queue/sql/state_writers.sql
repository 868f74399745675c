-- Who could write a job's state besides the queue's own groups and their members, the owner, and superusers.
select rolname as role, case when has_table_privilege(role.oid, 'queue_job', 'update') then 'the whole row' else 'the state' end as may_write
from pg_roles as role
where has_column_privilege(role.oid, 'queue_job', 'state', 'update')
    and not rolsuper
    and rolname not like 'pg\_%%'
    and role.oid <> (select relowner from pg_class where oid = 'queue_job'::regclass)
    and not exists (
        select from pg_roles as known
        where known.rolname in ('queue_work', 'queue_operate') and pg_has_role(role.oid, known.oid, 'member')
    )
order by rolname;
