insert into queue_schema (version) values (1);
