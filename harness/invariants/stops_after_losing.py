"""A worker that has been told that it lost a job writes nothing more under that grant.

Rule: Q9: zero rows = ownership lost; the old worker stops and overwrites nothing. Judged where its guarded write moved no row
after somebody else had moved the job on from its grant: then no later write of it for that grant may be accepted. A renewal
that is refused because the lease is over, before anybody took the job, loses nothing yet (Q10). Source: bug zoo B24.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Attempt, Job, Transition
from harness.history.story import Story

NAME = "stops_after_losing"
_GUARDED = frozenset({"complete", "fail", "renew", "release"})


@invariant(
    serves=("Q9", "V5"),
    broken_queue="lost_then_forced",
    mend=(
        "Take zero rows from a guarded UPDATE for the end: drop the job and write nothing more for it. Remove any "
        "fallback that matches the id alone."
    ),
)
def stops_after_losing(story: Story) -> Iterator[Finding | Unknown]:
    """A worker whose write was refused writes nothing more for that grant."""
    for job in story.jobs.values():
        if len(job.transitions) < 3 or all(attempt.moved for attempt in job.attempts):
            continue
        for refused in job.attempts:
            if refused.moved or not _GUARDED & set(refused.event.changes) or "claim" in refused.event.changes:
                continue
            write = _written_after(job, refused)
            if write is not None:
                yield _finding(story, job, refused, write)
                break


def _written_after(job: Job, refused: Attempt) -> Transition | None:
    """The refused worker's next accepted write under the same grant, where somebody else had moved the job before."""
    worker = refused.event.worker
    moved_on = False
    granted = False
    for transition in job.transitions:
        if transition.worker == worker:
            if transition.change == "claim":
                granted, moved_on = True, False
            elif granted and moved_on and transition.began > refused.n:
                return transition
        elif granted and transition.change not in {"enqueue", "renew", "other"}:
            moved_on = True
    return None


def _finding(story: Story, job: Job, refused: Attempt, write: Transition) -> Finding:
    worker = refused.event.worker
    sentence = (
        f"worker {worker} had to stop with job {job.key!r}, because its {'/'.join(refused.event.changes)} of"
        f" {story.clock(refused.n)} moved no row; however, its {write.change} was accepted afterwards, by transaction"
        f" {write.moved.xid}"
    )
    return Finding(NAME, sentence, (refused.n, write.n), job.key, (worker,))
