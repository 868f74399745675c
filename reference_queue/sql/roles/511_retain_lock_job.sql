grant update (finished_at) on queue_job to queue_retain;
