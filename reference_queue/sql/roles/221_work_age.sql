grant select on queue_age to queue_work;
