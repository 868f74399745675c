-- Reads all rows, but beside reads and writes.
alter table queue_job validate constraint business_key_is_short;
