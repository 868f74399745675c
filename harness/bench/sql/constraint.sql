-- How a constraint is written, to make it again after a fill.
select pg_get_constraintdef(oid) as definition from pg_constraint where conname = %(name)s;
