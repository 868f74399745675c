"""A lease is counted by the database's clock, so it ends one lease length after the grant by that clock, never elsewhere.

Rule (V7, Q10): the lease's end must lie after the transaction's start, and no later than the wall clock of the row's
change plus the declared lease and a small tolerance for rounding; where the clock was set back in between, than that of the
start plus as much. A lease from a worker's clock that is wrong falls outside.
Judged for grants (a renewal may be a back-off) where the subject declares a lease and the clock "database".
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.story import Story

NAME = "lease_by_database_clock"
TOLERANCE_SECONDS = 0.25


def _applies(story: Story) -> str | None:
    if not story.subject.has_lease or story.subject.lease_seconds is None:
        return "declare subject.lease and subject.jobs.lease_until to have this judged"
    if story.subject.clock != "database":
        return f"the subject says that its leases go by the clock of the {story.subject.clock}"
    return None


@invariant(
    serves=("Q10", "V7"),
    broken_queue="lease_from_worker_clock",
    applies=_applies,
    mend=(
        "Compute the lease's end in SQL (`lease_until = now() + make_interval(secs => $1)`) in a `timestamptz` "
        "column, at grants and takeovers. Take no time from the worker's clock."
    ),
)
def lease_by_database_clock(story: Story) -> Iterator[Finding | Unknown]:
    """Every granted lease ends one lease length after its grant, by the database's clock."""
    lease = story.subject.lease_seconds or 0.0
    allowed_us = round(lease * 1e6 + max(TOLERANCE_SECONDS, lease / 20) * 1e6)
    for job in story.jobs.values():
        for transition in job.grants:
            moved = transition.moved
            if moved.worker == 0 or moved.new is None:
                continue
            until = moved.new.lease_us
            # Where the clock was set back in between, a lease from clock_timestamp() may end before the transaction's start.
            began_us = min(moved.transaction_us, moved.wall_us)
            if until is None or began_us < until <= moved.wall_us + allowed_us:
                continue
            if moved.wall_us < moved.transaction_us < until:
                # The clock was set back between the transaction's start and its change: its lease began by the older clock.
                if until > moved.transaction_us + allowed_us:
                    yield Unknown(
                        f"the database's clock was set back inside the transaction that granted job {job.key!r}, so where"
                        " its lease began cannot be told",
                        (transition.n,),
                    )
                continue
            off = (until - moved.wall_us) / 1e6
            shown = f"{off:.3f} s after" if off >= 0 else f"{-off:.3f} s before"
            sentence = (
                f"the lease of job {job.key!r} had to end within {lease:g} s, because that is the declared lease and the"
                f" database's clock decides; however, worker {moved.worker}'s {moved.change} set its end {shown} the database's"
                " time"
            )
            yield Finding(NAME, sentence, (transition.n,), job.key, (moved.worker,))
