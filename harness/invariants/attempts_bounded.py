"""A job is not started more often than the subject allows; one that kills its worker every time ends.

Rule: Q12, Q13. A start is a grant under which a call was made, or whose holder died holding it. A grant that its holder gave
back without a call, or because it was told to stop, costs nothing, and an operator's requeue counts anew. Judged where max_attempts is declared. Source: bug zoo
B48 and its I6.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Job, Transition
from harness.history.story import Story

NAME = "attempts_bounded"


def _applies(story: Story) -> str | None:
    return None if story.subject.max_attempts is not None else "declare subject.max_attempts to have this judged"


@invariant(
    serves=("Q12", "Q13"),
    broken_queue="crash_not_counted",
    applies=_applies,
    mend=(
        "Count the attempt in the statement that grants the job, takeovers included (`attempts = attempts + 1`), "
        "since a worker that dies reports nothing. Where `attempts >= max_attempts`, end the job instead of granting "
        "it."
    ),
)
def attempts_bounded(story: Story) -> Iterator[Finding | Unknown]:
    """No job is started more often than max_attempts."""
    most = story.subject.max_attempts or 0
    for job in story.jobs.values():
        if len(job.grants) <= most:
            continue
        starts: list[Transition] = []
        for index, grant in enumerate(job.grants):
            if _requeued(job, index):
                if len(starts) > most:
                    break
                starts.clear()
            if _started(story, job, index):
                starts.append(grant)
        if len(starts) > most:
            yield _finding(job, starts, most)


def _requeued(job: Job, index: int) -> bool:
    """Whether an operator moved the job between the grant before this one and this one."""
    if index == 0:
        return False
    return any(job.transitions[place].worker == 0 for place in job.span(index - 1))


def _started(story: Story, job: Job, index: int) -> bool:
    grant = job.grants[index]
    span = [job.transitions[place] for place in job.span(index)]
    released = next((t for t in span if t.same_holder(grant) and t.change == "release"), None)
    if released is not None and any(seen.n < released.began for seen in story.worker(grant.worker).signals):
        return False
    if any(call.grant == index for call in job.calls):
        return True
    if released is not None:
        return False
    wrote = any(t.same_holder(grant) and t.change in {"complete", "fail"} for t in span)
    lives = story.worker(grant.worker).incarnations
    died = any(life.fell is not None and grant.incarnation in {0, life.number} for life in lives)
    return died and not wrote


def _finding(job: Job, starts: list[Transition], most: int) -> Finding:
    tokens = ", ".join(
        str(s.moved.new.token) for s in starts if s.moved.new is not None and s.moved.new.token is not None
    )
    shown = f", tokens {tokens}" if tokens else ""
    attempts = "1 attempt" if most == 1 else f"{most} attempts"
    over = starts[most]
    sentence = (
        f"job {job.key!r} had to end at its maximum, because the subject allows {attempts}; however, worker {over.worker}"
        f" started it for the {_ordinal(most + 1)} time ({len(starts)} in all{shown})"
    )
    witness = (starts[0].n, starts[most - 1].n, over.n) if most else (over.n,)
    return Finding(NAME, sentence, tuple(dict.fromkeys(witness)), job.key, tuple(sorted({s.worker for s in starts})))


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
