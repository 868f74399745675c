"""Many outages at once: the recursion of ``simulation`` with a column per replication, for bands rather than stories.

Retries are part of a job's slot time here (retried at once, on its slot): how long the backlog lasts does not depend on the
order of service, only on the work. For backoff and for single jobs use ``simulation``.
"""

import numpy as np

from harness.capacity.draws import Floats
from harness.capacity.simulation import Outage


def drain_times(
    dues: Floats, durations: Floats, slots: int, outage: Outage, limit_per_second: float | None = None
) -> Floats:
    """Seconds from recovery until nothing due is left unclaimed, for each column; NaN: not within the jobs given.

    ``dues`` and ``durations`` have a row per job, sorted by due time. Jobs in flight are killed and run again, first.
    ``limit_per_second`` spaces all starts evenly.
    """
    count, columns = dues.shape
    before = int(np.searchsorted(dues.min(axis=1), outage.start_seconds))
    pool = _Slots(slots, columns, float(min(dues.min(), 0.0)), limit_per_second)
    claims = np.empty((before, columns))
    for n in range(before):
        claims[n] = pool.serve(dues[n], durations[n])
    unfinished = (claims >= outage.start_seconds) | (claims + durations[:before] > outage.start_seconds)
    due = dues <= outage.end_seconds
    late = (unfinished & due[:before]).any(axis=0) | ((dues >= outage.start_seconds) & due).any(axis=0)
    drained = np.where(late, np.nan, 0.0)
    first = int(np.argmax(unfinished.any(axis=1))) if unfinished.any() else before
    pool = _Slots(slots, columns, outage.end_seconds, limit_per_second)
    for n in range(first, count - 1):
        # What a column finished before the outage passes with no work and no call: its slot is free again at once.
        claim = pool.serve(dues[n], durations[n], unfinished[n] if n < before else None)
        now = np.isnan(drained) & (dues[n + 1] > claim)
        if now.any():
            drained[now] = claim[now] - outage.end_seconds
            if not np.isnan(drained).any():
                break
    return drained


class _Slots:
    """The times at which slots get free, sorted down each column, and the limiter in front of them."""

    def __init__(self, slots: int, columns: int, free_at: float, limit_per_second: float | None) -> None:
        self.free = np.full((slots, columns), float(free_at))
        self.spare = np.empty_like(self.free)
        self.spacing = 1 / limit_per_second if limit_per_second else 0.0
        self.gate = np.full(columns, float(free_at))

    def serve(self, due: Floats, length: Floats, really: np.ndarray | None = None) -> Floats:
        """One job in every column: when it starts. Where ``really`` is false the job takes no time and no call."""
        claim: Floats = np.maximum(self.free[0], due)
        if self.spacing:
            np.maximum(claim, self.gate, out=claim)
            after = claim + self.spacing
            self.gate = after if really is None else np.where(really, after, self.gate)
        finish = claim + length if really is None else np.where(really, claim + length, self.free[0])
        # Take the earliest out and put ``finish`` in its place in the order, in whole rows: no column needs a sort.
        kept, free = self.spare, self.free
        np.maximum(free, finish, out=kept)
        np.minimum(kept[:-1], free[1:], out=kept[:-1])
        self.free, self.spare = kept, free
        return claim
