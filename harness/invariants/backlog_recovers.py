"""Once its faults have healed, a queue works off what has piled up while new jobs keep coming, within its budget.

Rule: V10. Judged where a story gave the queue a stated time for it (a ``Waited`` entry for ``RECOVERY``): backlog and age of the
oldest job must be back to what they were before the fault. Without a living worker nobody could, so that is inconclusive, as is a
machine that stalled for long, or a producer that brought no more jobs to tell by.
"""

from collections.abc import Iterator, Sequence

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import Waited
from harness.history.job import Job, Seen
from harness.history.story import Story

NAME = "backlog_recovers"
RECOVERY = "the backlog to be back to normal"
STALL_SHARE = 0.25


def _was_given(story: Story) -> str | None:
    return None if any(wait.what.what == RECOVERY for wait in story.waits) else "no recovery was waited for"


@invariant(
    serves=("V10", "Q16"),
    broken_queue="no_reconnect",
    applies=_was_given,
    mend=(
        "Open a new connection with back-off after each lost one, in the claim loop, the heartbeat and the listener "
        "alike. Or let the process exit and have a supervisor start it again."
    ),
)
def backlog_recovers(story: Story) -> Iterator[Finding | Unknown]:
    """The backlog is back to normal within its budget."""
    for wait in story.waits:
        if wait.what.what != RECOVERY or wait.what.met:
            continue
        if wait.what.idle_workers == 0:
            yield Unknown("the backlog did not go, but no worker was left to work it off", (wait.n,))
        elif (stalled := _stalled_seconds(story, wait)) > wait.what.seconds * STALL_SHARE:
            yield Unknown(f"the backlog did not go, but the machine stalled for {stalled:.1f} s meanwhile", (wait.n,))
        elif late := _late(story, wait):
            yield _finding(story, wait, late)
        else:
            yield Unknown("the backlog was not seen to stay down, but no job was without a result either", (wait.n,))


def _late(story: Story, wait: Seen[Waited]) -> list[Job]:
    """The jobs that were enqueued before the end of the wait and had no result by then."""
    waiting = [job for job in story.jobs.values() if job.enqueued and job.enqueued[0].n < wait.n]
    return [
        job for job in waiting if not any(t.n < wait.n and t.change in {"complete", "fail"} for t in job.transitions)
    ]


def _stalled_seconds(story: Story, wait: Seen[Waited]) -> float:
    began = wait.t - wait.what.seconds * 1e9
    within = [stall.what for stall in story.stalls if began <= stall.t <= wait.t]
    return sum(max(stall.loop_lag_ms, stall.select_one_ms) for stall in within) / 1000


def _finding(story: Story, wait: Seen[Waited], late: Sequence[Job]) -> Finding:
    began = wait.t - wait.what.seconds * 1e9
    over = [healed for healed in story.healed if healed.t <= began]
    healed = over[-1] if over else None
    after = (
        f" the last fault ('{healed.what.fault}') healed at {story.clock(healed.n)} and" if healed is not None else ""
    )
    sentence = (
        f"the backlog had to go, because{after} {wait.what.seconds:g} s were given with {wait.what.idle_workers} living"
        f" worker(s); however, {len(late)} job(s) had no result by {story.clock(wait.n)}"
    )
    witness = [healed.n] if healed is not None else []
    oldest = min(late, key=lambda job: job.enqueued[0].n)
    witness.append(oldest.enqueued[0].n)
    return Finding(NAME, sentence, (*sorted(witness), wait.n), oldest.key)
