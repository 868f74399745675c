grant select on queue_progress to queue_read;
