"""A job is taken from its holder only after the lease's end, by the database's clock.

Rule: a grant, or a rescue by a worker that never held the job, is early if its wall clock is before
the lease's end; fine if its transaction clock is not; in between it is unknown. There is no excuse for early. Not judged: a
worker process that takes its own job again, and one that restarts under the same number after its earlier process has
died. Source: Q10, V2, bug zoo B03, B05, B29.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Job, Transition
from harness.history.lease import Lease, Ruling, lease_at
from harness.history.story import Story

NAME = "one_owner"


@invariant(
    serves=("Q1", "Q7", "Q10", "V2", "V5", "V11"),
    broken_queue="select_then_update_in_two_transactions",
    mend=(
        "Find and mark the job in one statement that locks what it finds (`for update skip locked`). Take a running "
        "job only where `lease_until <= now()`, by the database's clock."
    ),
)
def one_owner(story: Story) -> Iterator[Finding | Unknown]:
    """No job is taken from a holder whose lease is not over."""
    for job in story.jobs.values():
        if job.calm:
            continue
        for place, transition in enumerate(job.transitions):
            if not _takes(job, place, transition):
                continue
            ruling = lease_at(story, job, place)
            holder = ruling.holder
            if holder is None or transition.same_holder(holder) or _own_earlier_life(story, holder, transition):
                continue
            if ruling.lease is Lease.EARLY:
                yield _finding(job, transition, ruling, holder)
            elif ruling.lease is Lease.UNKNOWN:
                yield Unknown(
                    f"whether worker {transition.worker} took job {job.key!r} from worker {holder.worker} too early cannot be"
                    f" told: {ruling.why}",
                    (holder.n, transition.n),
                )


def _takes(job: Job, place: int, transition: Transition) -> bool:
    if transition.change == "claim":
        return True
    if transition.worker == 0 or transition.change not in {"release", "fail", "complete"}:
        return False
    # A write by an earlier holder is stale or a rescue: no_stale_write tells them apart, by the same lease rule.
    return not any(g.same_holder(transition) for g, at in zip(job.grants, job.places, strict=True) if at < place)


def _own_earlier_life(story: Story, holder: Transition, transition: Transition) -> bool:
    """Whether the holder was an earlier process of the same worker that had died by then."""
    if holder.worker != transition.worker:
        return False
    lives = story.worker(holder.worker).incarnations
    return any(
        life.number == holder.incarnation and life.died is not None and life.died < transition.began for life in lives
    )


def _finding(job: Job, transition: Transition, ruling: Ruling, holder: Transition) -> Finding:
    token = transition.with_token if transition.change == "claim" else ""
    sentence = (
        f"job {job.key!r} belonged to worker {holder.worker}{holder.with_token}, because {ruling.why};"
        f" however, worker {transition.worker}'s {transition.change}{token} took it, by transaction {transition.moved.xid},"
        f" {(transition.moved.wall_us - holder.moved.wall_us) / 1000:.0f} ms after that grant"
    )
    workers = tuple(sorted({holder.worker, transition.worker} - {0}))
    return Finding(NAME, sentence, (holder.n, transition.n), job.key, workers)
