-- A few bytes for any amount of audit: the table only grows at its end.
create index if not exists queue_audit_at on queue_audit using brin (at);
