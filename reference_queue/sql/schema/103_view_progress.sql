-- Moves of the last minute, from the audit. Takeovers that go on rising mean workers that die or stall.
create or replace view queue_progress as
select
    count(*) filter (where reason = 'claimed') as claims,
    count(*) filter (where reason like 'taken over%') as takeovers,
    count(*) filter (where to_state = 'done') as completions,
    count(*) filter (where to_state = 'retry' and from_state = 'running') as retries,
    count(*) filter (where to_state = 'dead') as deaths,
    count(*) filter (where to_state = 'reconcile') as reconciles
from queue_audit
where at > now() - interval '1 minute';
