-- Nullable and without a default: no row is rewritten.
alter table queue_job add column if not exists permit integer, add column if not exists business_key text;
