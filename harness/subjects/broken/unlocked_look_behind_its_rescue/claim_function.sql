create function claim(who text, lease_seconds double precision)
returns table (id bigint, key text, token bigint)
language plpgsql
as $$
declare
    due bigint;
begin
    update task
    set state = case when attempts >= 3 then 'dead' else 'pending' end, worker = null, lease_until = null
    where state = 'running' and lease_until <= now();

    select task.id into due from task
    where task.state = 'pending' and task.run_at <= now()
    order by task.run_at, task.id
    limit 1;

    return query
    update task
    set state = 'running', worker = who, version = task.version + 1, attempts = task.attempts + 1,
        lease_until = now() + make_interval(secs => lease_seconds)
    where task.id = due
    returning task.id, task.key, task.version;
end
$$
