"""A job whose content is wrong is not tried again.

Rule: Q13: content failures are final at once. After a 4xx answer was delivered to a living worker the job gets no further
call, unless that worker could not record it (died, was stopped or cut off and lost the job) or an operator requeued it. A
fenced sink's refusal of an old token is no content failure.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Call, Job
from harness.history.story import Story

NAME = "content_fails_once"


@invariant(
    serves=("Q13",),
    broken_queue="content_failure_retried",
    mend=(
        "Let an answer that rejects the content (4xx) set the final state at once. Put a job back for a retry only "
        "after a system failure: 5xx, a timeout, a broken connection."
    ),
)
def content_fails_once(story: Story) -> Iterator[Finding | Unknown]:
    """A content failure ends the job at once."""
    for job in story.jobs.values():
        if len(job.calls) < 2:
            continue
        for failed, call in zip(job.calls, job.calls[1:], strict=False):
            if _content_failure(story, failed, call) and not _could_not_record(job, failed, call):
                yield _finding(story, job, failed, call)
                break


def _content_failure(story: Story, failed: Call, call: Call) -> bool:
    if failed.status is None or not 400 <= failed.status < 500 or failed.answered is None or failed.answered > call.n:
        return False
    stale = any(outcome == "stale" for _, outcome in failed.applied)
    return not stale and story.worker(failed.worker).alive_at(failed.answered)


def _could_not_record(job: Job, failed: Call, call: Call) -> bool:
    """Whether the job was taken from the worker with the answer, or moved by an operator, before it wrote a result."""
    if failed.grant < 0 or call.grant < 0:
        return False
    low, high = sorted((job.places[failed.grant], job.places[call.grant]))
    between = job.transitions[low + 1 : high]
    if any(t.worker == 0 for t in between):
        return True
    grant = job.grants[failed.grant]
    recorded = any(t.same_holder(grant) and t.change in {"fail", "release", "complete"} for t in between)
    return failed.grant != call.grant and not recorded


def _finding(story: Story, job: Job, failed: Call, call: Call) -> Finding:
    sentence = (
        f"job {job.key!r} had failed for good, because the sink answered {failed.status} to worker {failed.worker} at"
        f" {story.clock(failed.answered or failed.n)}: its content is wrong; however, worker {call.worker} called for it again at"
        f" {story.clock(call.n)}"
    )
    witness = (failed.n, failed.answered or failed.n, call.n)
    return Finding(NAME, sentence, witness, job.key, tuple(sorted({failed.worker, call.worker})))
