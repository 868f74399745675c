-- A record in the write-ahead log whose commit waits for the disk: how long that takes is the flush latency.
select pg_logical_emit_message(true, 'queueproof', '');
