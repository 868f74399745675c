create function claim(who text, most integer, lease_seconds double precision)
returns table (id bigint, key text, token bigint)
language plpgsql
as $$
declare
    candidate bigint;
    taken integer := 0;
begin
    for candidate in
        select task.id from task where task.state = 'pending' and task.run_at <= now() order by task.run_at, task.id
    loop
        exit when taken >= most;
        continue when not pg_try_advisory_xact_lock(4711, candidate::integer);
        -- The lock may have been free because somebody has just committed: only what is pending now is claimed. And a row
        -- may be held by somebody who knows nothing of our locks, such as a report: that one is passed over, too.
        perform from task where task.id = candidate and task.state = 'pending' for update skip locked;
        continue when not found;
        update task
        set state = 'running', worker = who, version = task.version + 1, attempts = task.attempts + 1,
            lease_until = now() + make_interval(secs => lease_seconds)
        where task.id = candidate
        returning task.id, task.key, task.version into id, key, token;
        taken := taken + 1;
        return next;
    end loop;
end
$$
