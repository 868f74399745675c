grant select on queue_archive to queue_read;
