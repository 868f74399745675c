create function tell() returns trigger language plpgsql as $$
begin
    notify work;
    return null;
end
$$;
create trigger told after insert on task for each statement execute function tell()
