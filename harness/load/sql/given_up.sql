-- Which of our jobs ended without success, or wait for a person.
select key
from (select ({key})::text as key, ({state})::text as state from {source}) as job
where starts_with(key, %(prefix)s::text) and state in ('dead', 'paused', 'reconcile');
