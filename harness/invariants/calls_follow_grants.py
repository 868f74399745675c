"""Each call needs a committed grant of that job to that worker, and each grant allows one call.

Rule: one call per grant, unless the reply was non-2xx or broken; none before the grant's
transaction ended, which is when the server said so on the worker's own connection. A call under a grant that somebody else
has taken over since is legal here: its repeat is judged by no_double_execution. Source: V2, V11, Q7.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Call, Job
from harness.history.story import Story

NAME = "calls_follow_grants"


def _applies(story: Story) -> str | None:
    if story.subject.has_owner or story.subject.has_token or story.claim_statements:
        return None
    if any(job.grants for job in story.jobs.values()):
        return None
    return "its claim changes no row: the mapping shows neither an owner nor a token, and no row was seen to be granted"


@invariant(
    serves=("Q2", "Q7", "V2", "V4", "V11"),
    broken_queue="calls_whatever_the_update_said",
    applies=_applies,
    mend=(
        "Start only rows that the granting UPDATE itself returns (`update ... returning id, token`), not rows that a "
        "SELECT found before. Call after its COMMIT has been confirmed."
    ),
)
def calls_follow_grants(story: Story) -> Iterator[Finding | Unknown]:
    """Every call follows a committed grant of its own."""
    unordered: list[int] = []
    for job in story.jobs.values():
        if not job.calls or not job.ours:
            continue
        for call in job.calls:
            if call.grant < 0:
                yield _without_grant(story, job, call)
                continue
            grant = job.grants[call.grant]
            if grant.known_by < call.n:
                continue
            if grant.notice is not None and grant.notice.settled is not None:
                yield _before_commit(story, job, call)
            else:
                unordered.append(call.n)
        if len(job.calls) > 1:
            yield from _too_many(story, job)
    if unordered:
        yield Unknown(
            f"{len(unordered)} calls cannot be ordered against the commits of their grants: the wire shows no end of these"
            " transactions",
            tuple(unordered[:3]),
        )


def _without_grant(story: Story, job: Job, call: Call) -> Finding:
    later = next((grant for grant in job.grants if grant.worker == call.worker), None)
    if later is not None:
        why = f"truth has its grant only later, at {story.clock(later.began)}"
        witness: tuple[int, ...] = (call.n, later.began, later.n)
    elif job.grants:
        held = ", ".join(dict.fromkeys(f"worker {grant.worker}" for grant in job.grants))
        why = f"truth has committed grants of it to {held} only"
        witness = (call.n, job.grants[-1].n)
    else:
        why = "truth has no committed grant of it to anybody"
        witness = (call.n,)
    sentence = (
        f"worker {call.worker} had no right to call for job {job.key!r}, because {why}; however, its call reached the sink at"
        f" {story.clock(call.n)}"
    )
    return Finding(NAME, sentence, witness, job.key, (call.worker,))


def _before_commit(story: Story, job: Job, call: Call) -> Finding:
    grant = job.grants[call.grant]
    sentence = (
        f"worker {call.worker} had to wait with its call for job {job.key!r}, because the transaction of its"
        f" grant{grant.with_token} ended only at {story.clock(grant.known_by)}; however, it"
        f" called at {story.clock(call.n)}"
    )
    return Finding(NAME, sentence, (grant.began, call.n, grant.known_by), job.key, (call.worker,))


def _too_many(story: Story, job: Job) -> Iterator[Finding]:
    """Count, per worker, the calls against the grants and the failed replies that it had had before each of them."""
    for worker in dict.fromkeys(call.worker for call in job.calls):
        mine = [call for call in job.calls if call.worker == worker]
        for count, call in enumerate(mine, start=1):
            grants = sum(1 for g in job.grants if g.worker == worker and (g.notice is None or g.notice.n < call.n))
            failed = sum(1 for c in mine if c.refused and c.answered is not None and c.answered < call.n)
            if grants and count > grants + failed:
                sentence = (
                    f"worker {worker} had used up its right to call for job {job.key!r}, because it had been granted the job"
                    f" {_times(grants)} and had {_times(failed)} a reply that failed; however, it made call number {count} at"
                    f" {story.clock(call.n)}"
                )
                before = mine[count - 2]
                yield Finding(NAME, sentence, (job.grants[call.grant].n, before.n, call.n), job.key, (worker,))
                break


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
