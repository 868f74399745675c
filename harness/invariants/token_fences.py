"""A token is a fence only if every grant has one of its own.

Rule: distinct per grant; growing only if promised; unchanged across a takeover = "not a fence".
Between grants the token may move (an operator's move bumps it). Judged where the subject shows a token. Source: Q1, Q10.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Job, Transition
from harness.history.story import Story

NAME = "token_fences"


def _applies(story: Story) -> str | None:
    return (
        None
        if story.subject.has_token
        else "the subject has no token; if it has one, declare subject.jobs.token to have this judged"
    )


@invariant(
    serves=("Q1", "Q9", "Q10"),
    broken_queue="token_kept_on_takeover",
    applies=_applies,
    mend=(
        "Set a new token in every statement that grants the job, takeovers included (`token = token + 1`). Never "
        "reset it, not for a retry either."
    ),
)
def token_fences(story: Story) -> Iterator[Finding | Unknown]:
    """Every grant has a token of its own, growing where that is promised."""
    promised = story.subject.token_increasing
    for job in story.jobs.values():
        if len(job.grants) == 1:
            if _token(job.grants[0]) is None:
                yield _absent(job, job.grants[0])
            continue
        seen: dict[str, Transition] = {}
        before: Transition | None = None
        for grant in job.grants:
            token = _token(grant)
            if token is None:
                yield _absent(job, grant)
                continue
            if token in seen:
                yield _repeated(job, seen[token], grant, token)
            elif promised and before is not None and _number(grant) <= _number(before):
                yield _shrunk(job, before, grant)
            seen[token] = grant
            before = grant


def _token(grant: Transition) -> str | None:
    return grant.moved.new.token if grant.moved.new is not None else None


def _number(grant: Transition) -> tuple[int, str]:
    """Tokens compare as numbers when they are numbers, else as text of equal rank."""
    token = _token(grant) or ""
    return (int(token), "") if token.lstrip("-").isdecimal() else (0, token)


def _absent(job: Job, grant: Transition) -> Finding:
    sentence = (
        f"worker {grant.worker}'s grant of job {job.key!r} needed a token, because the subject says that tokens fence its"
        f" writes; however, the row has none after transaction {grant.moved.xid}"
    )
    return Finding(NAME, sentence, (grant.n,), job.key, (grant.worker,))


def _repeated(job: Job, earlier: Transition, later: Transition, token: str) -> Finding:
    what = "not a fence" if not earlier.same_holder(later) else "not new"
    sentence = (
        f"the token of job {job.key!r} is {what}, because worker {earlier.worker} was granted the job with token {token};"
        f" however, worker {later.worker}'s later grant has token {token} again, so a late write of the first would match"
    )
    workers = tuple(sorted({earlier.worker, later.worker}))
    return Finding(NAME, sentence, (earlier.n, later.n), job.key, workers)


def _shrunk(job: Job, earlier: Transition, later: Transition) -> Finding:
    sentence = (
        f"the token of job {job.key!r} must grow, because the subject promises so and worker {earlier.worker} was granted the"
        f" job with token {_token(earlier)}; however, worker {later.worker}'s later grant has token {_token(later)}"
    )
    workers = tuple(sorted({earlier.worker, later.worker}))
    return Finding(NAME, sentence, (earlier.n, later.n), job.key, workers)
