grant select (job_id) on queue_archive to queue_retain;
