"""A worker that nothing disturbs keeps its lease for as long as it works, and starts nothing that is no longer its own.

Rule (Q10): judged where a job was taken from a worker that lived on, was not paused, cut off, held on
the wire or otherwise hurt, while the machine did not stall. If it renews leases (a heartbeat is declared), none may end
under a call that is in flight; and whether it renews or not, no call may begin well after another worker was granted the
job: what waited in a buffer is looked at again before it starts. Source: B29-B33, B123.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.calm import left_alone, stalled_between
from harness.history.job import Call, Job, Transition
from harness.history.story import Story

NAME = "keeps_what_it_works_on"
# Between a last look at the lease and the call's arrival some time passes, on an honest worker too.
LOOKED_SECONDS = 0.3


def _applies(story: Story) -> str | None:
    return None if story.subject.lease_seconds is not None else "declare subject.lease to have this judged"


@invariant(
    serves=("Q10", "Q19"),
    broken_queue="heartbeat_slower_than_the_lease",
    applies=_applies,
    mend=(
        "Renew at a third of the lease or sooner, from a thread or task that the handler cannot block, until the "
        "result is written, in a shutdown too. Check owner and lease again before starting a job from a buffer."
    ),
)
def keeps_what_it_works_on(story: Story) -> Iterator[Finding | Unknown]:
    """A worker left alone keeps what it works on, and starts nothing that it has lost."""
    for job in story.jobs.values():
        if len(job.grants) < 2 or not job.calls:
            continue
        for index, grant in enumerate(job.grants[:-1]):
            taken = job.grants[index + 1]
            if taken.same_holder(grant) or not grant.worker:
                continue
            call = _late(story, job, index, taken) or _in_flight(story, job, index, taken)
            if call is None or not left_alone(story, grant, max(taken.began, call.n)):
                continue
            stall = stalled_between(story, grant.n, max(taken.n, call.n))
            if stall is not None:
                yield Unknown(
                    f"worker {grant.worker} lost job {job.key!r} while it worked on it, but the machine had stalled",
                    (stall,),
                )
                continue
            yield _finding(story, job, grant, taken, call)
            break


def _in_flight(story: Story, job: Job, index: int, taken: Transition) -> Call | None:
    """A call of a worker that renews, made under the grant and not yet answered when another was granted the job."""
    if story.subject.heartbeat_seconds is None:
        return None
    for call in job.calls:
        if call.grant == index and call.n < taken.began and (call.answered is None or call.answered > taken.known_by):
            return call
    return None


def _late(story: Story, job: Job, index: int, taken: Transition) -> Call | None:
    """A call under the grant that began well after another was granted the job."""
    since = story.t(taken.began) + LOOKED_SECONDS * 1e9
    return next((call for call in job.calls if call.grant == index and call.t > since), None)


def _finding(story: Story, job: Job, grant: Transition, taken: Transition, call: Call) -> Finding:
    late = call.n > taken.began
    must = "had to look at its lease before it called" if late else "had to keep its lease while it called"
    however = (
        f"worker {taken.worker} was granted the job at {story.clock(taken.began)}, and its call came at {story.clock(call.n)}"
        if late
        else f"worker {taken.worker} was granted the job at {story.clock(taken.began)}, under its call of {story.clock(call.n)}"
    )
    sentence = f"worker {grant.worker} {must} for job {job.key!r}, because it lived and nothing had disturbed it; however, {however}"
    witness = tuple(sorted({grant.n, call.n, taken.n}))
    return Finding(NAME, sentence, witness, job.key, tuple(sorted({grant.worker, taken.worker})))
