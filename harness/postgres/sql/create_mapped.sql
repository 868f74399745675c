-- The columns of a job that the mapping yields, under one name for every queue.
create type queueproof.mapped as (
    job text, key text, state text, owner text, token text, lease_until timestamptz, attempts integer, run_at timestamptz
)
