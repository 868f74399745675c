"""A worker that takes over asks the outside world before it calls again, when the subject says that it does.

Rule: Q3, Q11. A repeat under a later grant, or the same one, needs the repeating worker to have asked between its grant and
its call, unless it knows the outcome itself: the earlier reply, 2xx or 4xx, was delivered to this very process. A call under an
older grant than the one before it (paused, then late) is no takeover. Judged where recovery is "ask".
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Call, Job
from harness.history.story import Story

NAME = "asks_before_repeating"


def _applies(story: Story) -> str | None:
    return (
        None
        if story.subject.recovery == "ask"
        else f"the subject does not ask: its recovery is '{story.subject.recovery}'"
    )


@invariant(
    serves=("Q3", "Q11", "Q12", "V4"),
    broken_queue="expired_to_pending_without_asking",
    applies=_applies,
    mend=(
        "Store that a call was begun before making it, and keep that at a takeover: an expired job is no plain "
        "pending one. The new holder asks the outside by the operation key before it calls."
    ),
)
def asks_before_repeating(story: Story) -> Iterator[Finding | Unknown]:
    """A call of unknown outcome is repeated only after asking."""
    for job in story.jobs.values():
        for before, call in zip(job.calls, job.calls[1:], strict=False):
            if before.grant < 0 or call.grant < before.grant or _knows(story, before, call):
                continue
            grant = job.grants[call.grant]
            since = max(grant.began, before.n) if call.grant == before.grant else grant.began
            if not any(ask.what.worker == call.worker and since < ask.n < call.n for ask in job.asks):
                yield _finding(story, job, before, call)


def _knows(story: Story, before: Call, call: Call) -> bool:
    """Whether the earlier reply reached the very process that now calls again."""
    if before.answered is None or before.answered > call.n or before.status is None or before.status >= 500:
        return False
    same = before.worker == call.worker and before.incarnation == call.incarnation
    return same and story.worker(before.worker).alive_at(before.answered)


def _finding(story: Story, job: Job, before: Call, call: Call) -> Finding:
    got = "no answer" if before.status is None else f"answer {before.status}"
    sentence = (
        f"worker {call.worker} had to ask about job {job.key!r} before calling again, because what worker {before.worker}'s call of"
        f" {story.clock(before.n)} ({got}) had done was unknown to it; however, it called at {story.clock(call.n)} without asking"
    )
    witness = (before.n, job.grants[call.grant].n, call.n)
    return Finding(NAME, sentence, witness, job.key, tuple(sorted({before.worker, call.worker})))
