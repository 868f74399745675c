-- Reads all rows, but beside reads and writes.
alter table queue_job validate constraint running_of_a_tenant_has_a_permit;
