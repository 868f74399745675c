-- Which of these backends wait behind another of the workers' backends.
select w.pid
from unnest(%(waiting)s::int[]) as w (pid)
where pg_blocking_pids(w.pid) && %(all)s::int[]
