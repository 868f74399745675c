-- Reads all rows, but beside reads and writes.
alter table queue_job validate constraint tenant_is_known;
