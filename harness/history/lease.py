"""The lease rule: whether a job's lease had ended, by the database's clock, when its row was taken from the holder.

Three clocks are known of each transition. Taken early is sure when even the latest of them, the wall clock of the row's
change, is before the lease's end; over is sure when the earliest, the transaction's start, is not. In between a hold may
have hidden an early decision, so nothing is said.
"""

import enum
from dataclasses import dataclass

from harness.history.job import Job, Transition
from harness.history.story import Story


class Lease(enum.Enum):
    """What the clocks say of a lease at a transition."""

    FREE = "free"  # nobody held the job
    OVER = "over"
    EARLY = "early"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Ruling:
    """The lease rule applied to one transition. ``holder`` is the grant that it took the job from."""

    lease: Lease
    holder: Transition | None = None
    why: str = ""


_FREE = Ruling(Lease.FREE)


def lease_at(story: Story, job: Job, place: int) -> Ruling:
    """Rule on the transition at ``place`` of the job, as a taking of the job from its latest holder."""
    if place == 0:
        return _FREE
    transition = job.transitions[place]
    moved = transition.moved
    before = job.transitions[place - 1].moved.new
    running = (moved.old is not None and moved.old.state == "running") or (
        before is not None and before.state == "running"
    )
    holder = job.holder_before(place)
    if not running or holder is None:
        return _FREE
    until = moved.old.lease_us if moved.old is not None else None
    if until is None:
        return _without_column(story, job, place, holder)
    left_ms = (until - moved.wall_us) / 1000
    if left_ms > 0:
        return Ruling(Lease.EARLY, holder, f"its lease had {left_ms:.0f} ms left by the database's wall clock")
    if moved.transaction_us >= until:
        return Ruling(Lease.OVER, holder, f"its lease had been over for {-left_ms:.0f} ms")
    return Ruling(
        Lease.UNKNOWN,
        holder,
        f"its lease ended {(until - moved.transaction_us) / 1000:.0f} ms after that transaction began and {-left_ms:.0f} ms"
        " before the row was changed",
    )


def _without_column(story: Story, job: Job, place: int, holder: Transition) -> Ruling:
    """Where the row shows no lease: the holder's death, or the declared lease counted from its last sign of life."""
    moved = job.transitions[place].moved
    at = job.transitions[place].began
    worker = story.worker(holder.worker)
    for incarnation in worker.incarnations:
        same = incarnation.number == holder.incarnation or not holder.incarnation
        if same and incarnation.died is not None and incarnation.died < at:
            return Ruling(Lease.OVER, holder, f"worker {holder.worker} had died")
    if story.subject.lease_seconds is not None:
        signs = [
            t.moved.wall_us for t in job.transitions[:place] if t.change in {"claim", "renew"} and t.same_holder(holder)
        ]
        until = max(signs) + round(story.subject.lease_seconds * 1e6)
        if moved.transaction_us >= until:
            return Ruling(Lease.OVER, holder, "its declared lease, counted from its last renewal, was over")
    disturbed = any(entry.n < at for entry in worker.signals) or any(
        fault.n < at and fault.what.worker in {0, holder.worker} for fault in story.faults
    )
    if disturbed:
        return Ruling(Lease.UNKNOWN, holder, "the row shows no lease, and the holder had been disturbed")
    return Ruling(Lease.EARLY, holder, "the row shows no lease, and the holder lived undisturbed")
