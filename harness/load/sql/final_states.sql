-- Each of our jobs as it ended up.
select ({key})::text as key, ({state})::text as state, coalesce(({attempts})::integer, 0) as attempts
from {source}
where starts_with(({key})::text, %(prefix)s::text);
