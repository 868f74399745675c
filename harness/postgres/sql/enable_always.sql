-- A session that sets session_replication_role = replica skips ordinary triggers, not these.
alter table {table} enable always trigger {trigger}
