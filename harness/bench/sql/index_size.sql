select pg_relation_size(%(name)s::regclass) as bytes;
