"""Nothing is called for that nobody enqueued.

Rule: a key counts as enqueued when its enqueue was acknowledged or truth has its row, so that an
enqueue of unknown outcome is no phantom. Source: the "unexpected" of total-queue.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.story import Story

NAME = "no_phantom"


@invariant(
    serves=("V2", "V8"),
    broken_queue="retry_under_another_name",
    mend=(
        "Hand the stored key to the handler as it is, on every attempt. Keep the attempt's number in a column or "
        "field of its own, not in the key."
    ),
)
def no_phantom(story: Story) -> Iterator[Finding | Unknown]:
    """Every call is for a job that was enqueued."""
    for job in story.jobs.values():
        if job.ours or not job.calls:
            continue
        call = job.calls[0]
        sentence = (
            f"worker {call.worker} called for {job.key!r} at {story.clock(call.n)}, because its handler was given that key;"
            " however, no job of that key was ever enqueued"
        )
        yield Finding(NAME, sentence, (call.n,), job.key, (call.worker,))
