grant select on queue_orphans to queue_work;
