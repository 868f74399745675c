"""What a worker was granted it starts, gives back, or at least keeps alive; it does not forget it and ask for more.

Rule: a claim returns every row that it marked. Judged on a worker that was left alone: its grant was never
called for, renewed or written again, and was taken from it by another (or is running at the end, its lease over), although it
looked for work several times with no call of its own in flight. A full buffer does not ask for more. Source: B01, B14, B50.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.calm import left_alone
from harness.history.job import Job
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

NAME = "claims_are_started"
LOOKS = 3


@invariant(
    serves=("Q7", "Q16", "V11"),
    broken_queue="over_claim_by_in_subquery",
    mend=(
        "Lock the candidates in a `materialized` CTE or by `id = any(array(select ... limit $1 for update skip "
        "locked))`: in `id in (select ...)` the limit may run once per row. Start every row that is returned."
    ),
)
def claims_are_started(story: Story) -> Iterator[Finding | Unknown]:
    """What a worker was granted it does not forget."""
    looks: dict[int, list[int]] | None = None
    for job in story.jobs.values():
        for index, grant in enumerate(job.grants):
            if not grant.worker or any(call.grant == index for call in job.calls):
                continue
            end = _lost(story, job, index)
            if end is None or not left_alone(story, grant, end) or _touched(story, job, index):
                continue
            if looks is None:
                looks = _idle_looks(story)
            idle = [n for n in looks.get(grant.worker, ()) if grant.known_by < n < end]
            if len(idle) < LOOKS:
                continue
            sentence = (
                f"worker {grant.worker} had to start job {job.key!r} or give it back, because it was granted the"
                f" job{grant.with_token} at {story.clock(grant.began)}; however, it looked for more work {len(idle)} times with nothing in"
                " hand and never touched this one again"
            )
            yield Finding(NAME, sentence, (grant.n, idle[0], idle[-1], end), job.key, (grant.worker,))
            break


def _lost(story: Story, job: Job, index: int) -> int | None:
    """The entry at which the grant is surely over: taken by somebody, or still running when everything had ended."""
    if index + 1 < len(job.grants):
        return job.grants[index + 1].n
    row = job.final_row()
    if row is None or row.state != "running":
        return None
    lease = story.subject.lease_seconds or 0.0
    given = [
        wait.n for wait in story.waits if not wait.what.met and wait.what.seconds > lease and wait.n > job.grants[-1].n
    ]
    return given[0] if given else None


def _touched(story: Story, job: Job, index: int) -> bool:
    """Whether the holder, or an operator, wrote the row again before it was lost; a rescue of expired leases does not count."""
    grant = job.grants[index]
    for place in job.span(index):
        transition = job.transitions[place]
        if transition.worker == 0:
            return True
        rescue = transition.change in {"release", "fail"} and lease_at(story, job, place).lease is Lease.OVER
        if transition.same_holder(grant) and not rescue:
            return True
    return False


def _idle_looks(story: Story) -> dict[int, list[int]]:
    """Per worker, the entries of its claims that found nothing while none of its calls was in flight."""
    busy: dict[int, list[tuple[int, int]]] = {}
    for call in story.calls.values():
        end = call.answered if call.answered is not None else story.entries[-1].n
        busy.setdefault(call.worker, []).append((call.n, end))
    # A number in a claim may look like a job's id, so that the attempt is told with that job.
    attempts = {attempt.n: attempt.event for attempt in story.unnamed}
    attempts |= {attempt.n: attempt.event for job in story.jobs.values() for attempt in job.attempts}
    looks: dict[int, list[int]] = {}
    for n in sorted(attempts):
        event = attempts[n]
        if "claim" not in event.changes or event.moved or event.sqlstate is not None:
            continue
        if not any(since < n < end for since, end in busy.get(event.worker, ())):
            looks.setdefault(event.worker, []).append(n)
    return looks
