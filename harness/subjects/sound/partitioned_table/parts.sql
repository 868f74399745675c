do $$
begin
    for part in 0..2 loop
        execute format('create table task_%s partition of task for values with (modulus 3, remainder %s)', part, part);
    end loop;
end
$$
