"""A job that is free is given to an idle worker that asks, whatever happens to other jobs meanwhile.

Rule: a free permit with an eligible job is used soon. Judged only where a scenario names the one
job that it leaves free (a ``Waited`` with its key), with an idle worker beside it for longer than a takeover may take. A stall
of the machine makes it inconclusive. Source: B04, B12, B14, B69.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.story import Story

NAME = "free_jobs_are_given_out"


@invariant(
    serves=("Q7", "Q15", "V3", "V6"),
    broken_queue="claim_locks_every_candidate",
    mend=(
        "Lock no more than is taken: `limit $1 for update skip locked` in one and the same sub-select. Leave out jobs "
        "that may not run yet (a busy key, a full tenant) in its WHERE, not after the limit."
    ),
)
def free_jobs_are_given_out(story: Story) -> Iterator[Finding | Unknown]:
    """A free job is given to an idle worker."""
    for wait in story.waits:
        key = wait.what.key
        if key is None or wait.what.met or not wait.what.idle_workers:
            continue
        began = wait.t - wait.what.seconds * 1e9
        stall = next((stall.n for stall in story.stalls if began <= stall.t <= wait.t), None)
        if stall is not None:
            yield Unknown(f"job {key!r} was not given out in its time, but the machine had stalled", (stall, wait.n))
            continue
        sentence = (
            f"job {key!r} had to be given out, because it was pending, due and held by nobody, and {wait.what.idle_workers} idle"
            f" worker(s) asked for work; however, none was granted it in {wait.what.seconds:g} s"
        )
        yield Finding(NAME, sentence, (wait.n,), key)
