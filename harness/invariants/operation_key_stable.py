"""All calls of one job carry one operation key, and no two jobs share one.

Rule: Q3: the same key for every attempt. A sink that dedupes on a key made per attempt dedupes nothing; one that is shared
swallows the second job's effect. A subject made for a naive sink may send none at all. Source: bug zoo B119.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Call, Job
from harness.history.story import Story

NAME = "operation_key_stable"


@invariant(
    serves=("Q3", "V4", "V9"),
    broken_queue="operation_key_per_attempt",
    mend=(
        "Make the operation key once, at the enqueue, unique to the job, and store it in the row. Send that one on "
        "every attempt, never one made from the attempt's number, the time or the job's kind."
    ),
)
def operation_key_stable(story: Story) -> Iterator[Finding | Unknown]:
    """Every call of a job carries the same operation key."""
    needed = story.subject.sink != "naive"
    owners: dict[str, tuple[Job, Call]] = {}
    for job in story.jobs.values():
        if not job.calls:
            continue
        first = job.calls[0]
        key = first.event.operation_key
        if key is None and needed:
            sentence = (
                f"worker {first.worker}'s call for job {job.key!r} needed an operation key, because the subject is made for a"
                f" {story.subject.sink} sink; however, it carried none"
            )
            yield Finding(NAME, sentence, (first.n,), job.key, (first.worker,))
            continue
        for call in job.calls[1:]:
            if call.event.operation_key != key:
                yield _changed(job, first, call)
                break
        if key is not None:
            owner = owners.setdefault(key, (job, first))
            if owner[0] is not job:
                yield _shared(owner[0], owner[1], job, first)


def _changed(job: Job, first: Call, again: Call) -> Finding:
    sentence = (
        f"job {job.key!r} needs one operation key for all its calls, because the outside world tells a repeat by it; however,"
        f" worker {first.worker} called with {first.event.operation_key!r} and worker {again.worker} with"
        f" {again.event.operation_key!r}"
    )
    return Finding(NAME, sentence, (first.n, again.n), job.key, tuple(sorted({first.worker, again.worker})))


def _shared(one: Job, first: Call, other: Job, call: Call) -> Finding:
    sentence = (
        f"jobs {one.key!r} and {other.key!r} need operation keys of their own, because the outside world takes a known key for a"
        f" repeat; however, both were called with {call.event.operation_key!r}"
    )
    return Finding(NAME, sentence, (first.n, call.n), other.key, tuple(sorted({first.worker, call.worker})))
