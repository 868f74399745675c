grant delete on queue_job to queue_retain;
