-- The rows that a transaction in progress has locked or changed, by the job's key.
select ({id})::text as job, ({key})::text as key from {table} where {table_name}.xmax::text = %(xid)s
