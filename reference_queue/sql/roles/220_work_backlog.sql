grant select on queue_backlog to queue_work;
