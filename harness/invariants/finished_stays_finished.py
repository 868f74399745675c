"""A finished job stays finished: no worker moves it out of its final state.

Rule: accepted writes are judged; done, dead, paused and reconcile count as ended. Only an operator moves a
job on from there (worker 0 is not blamed). done -> done is judged by no_stale_write; removing a finished row is retention.
Source: Q9, bug zoo B20, B26, B106.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import ENDED, Job, Transition
from harness.history.story import Story

NAME = "finished_stays_finished"
_FINAL = frozenset({"done", "dead", "deleted"})


@invariant(
    serves=("Q9", "Q13", "V5", "V8"),
    broken_queue="rescue_by_a_stale_list",
    mend=(
        "Repeat the condition in the UPDATE that moves the job (`where id = $1 and state = 'running' and lease_until "
        "<= now()`): what an earlier SELECT listed may have ended since."
    ),
)
def finished_stays_finished(story: Story) -> Iterator[Finding | Unknown]:
    """No worker moves a finished job out of its final state."""
    for job in story.jobs.values():
        for place in job.reopened:
            transition = job.transitions[place]
            old, new = transition.moved.old, transition.moved.new
            if transition.worker == 0 or old is None or new is None or new.state == old.state:
                continue
            if new.state not in ENDED or (old.state in _FINAL and new.state != "deleted"):
                yield _finding(job, place, transition, old.state, new.state)


def _finding(job: Job, place: int, transition: Transition, old: str, new: str) -> Finding:
    ended = next(
        (t for t in reversed(job.transitions[:place]) if t.moved.new is not None and t.moved.new.state == old), None
    )
    by = f" by worker {ended.worker}'s {ended.change}" if ended is not None and ended.worker else ""
    sentence = (
        f"job {job.key!r} was finished, because truth has it as {old}{by}; however, worker {transition.worker}'s"
        f" {transition.change} moved it to {new}, by transaction {transition.moved.xid}"
    )
    witness = (ended.n, transition.n) if ended is not None else (transition.n,)
    workers = {transition.worker} | ({ended.worker} if ended is not None else set())
    return Finding(NAME, sentence, witness, job.key, tuple(sorted(workers - {0})))
