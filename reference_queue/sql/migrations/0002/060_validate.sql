-- Reads all rows, but beside reads and writes.
alter table queue_job validate constraint claimable_has_attempts_left;
