-- What an interrupted CREATE INDEX CONCURRENTLY has left; it must go before the next try.
select format('drop index concurrently %%I', relname) as statement
from pg_index
join pg_class on pg_class.oid = indexrelid
where not indisvalid and relname like 'queue\_%%' and relnamespace = current_schema()::regnamespace;
