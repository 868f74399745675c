create function claim(who text, most integer, lease_seconds double precision)
returns table (id bigint, key text, token bigint)
language plpgsql
as $$
declare
    due task%rowtype;
begin
    for due in
        select * from task
        where task.state = 'pending' and task.run_at <= now()
        order by task.run_at, task.id
        limit most
        for update skip locked
    loop
        update task
        set state = 'running', worker = who, version = task.version + 1, attempts = task.attempts + 1,
            lease_until = now() + make_interval(secs => lease_seconds)
        where task.id = due.id
        returning task.id, task.key, task.version into id, key, token;
        return next;
    end loop;
end
$$
