insert into queue_schema (version) values (2) on conflict do nothing;
