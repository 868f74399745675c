create index if not exists queue_audit_job on queue_audit (job_id, id);
