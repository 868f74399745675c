grant select on queue_job to queue_read;
