grant delete on queue_audit to queue_retain;
