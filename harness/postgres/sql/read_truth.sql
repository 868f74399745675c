-- Transitions not seen yet. A transaction's rows become visible together, so first and last per job are its net effect.
-- Never by "seq > last": a lower number may commit later.
with unseen as (
    select t.* from queueproof.truth as t where t.seq > %(low)s and not t.seq = any(%(seen)s)
),
net as (
    select
        job, xid,
        min(seq) as first_seq,
        max(seq) as last_seq,
        array_agg(seq) as seqs
    from unseen
    group by job, xid
)
select
    n.seqs, l.seq, l.xid::text::bigint as xid, l.pid, l.worker, l.app, l.job, l.key,
    f.old_state, f.old_owner, f.old_token, f.old_lease, f.old_attempts, f.old_run_at,
    l.new_state, l.new_owner, l.new_token, l.new_lease, l.new_attempts, l.new_run_at,
    l.deleted, coalesce(f.error, l.error) as error,
    l.transaction_at, l.statement_at, l.wall_at,
    queueproof.change(
        f.old_state, f.old_owner, f.old_token, f.old_lease, f.old_attempts,
        l.new_state, l.new_owner, l.new_token, l.new_lease, l.new_attempts, l.deleted, l.transaction_at
    ) as change,
    exists (select from queueproof.enqueued as e where e.key = l.key) as ours
from net as n
join unseen as f on f.seq = n.first_seq
join unseen as l on l.seq = n.last_seq
order by l.seq
