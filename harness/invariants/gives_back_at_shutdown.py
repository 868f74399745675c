"""A worker that is told to stop gives back what it had claimed and not started.

Rule (Q19): judged where a worker was asked to stop (SIGTERM or its like), ended by itself and was not hurt
meanwhile: no job may then be left running under a grant of it for which it never called. What it had called for is not judged
here: its lease, or its result, takes care of that. A worker that the signal itself killed has promised nothing. Source: B50.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Job
from harness.history.story import Story
from harness.history.worker import Incarnation

NAME = "gives_back_at_shutdown"
_REQUESTS = frozenset({"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"})


@invariant(
    serves=("Q19",),
    broken_queue="claims_kept_at_shutdown",
    mend=(
        "On SIGTERM stop claiming, and put each claimed job that was not started back by a guarded UPDATE (`set state "
        "= 'pending' ... where id = $1 and owner = $2 and token = $3`) before the process exits."
    ),
)
def gives_back_at_shutdown(story: Story) -> Iterator[Finding | Unknown]:
    """A worker that stops gives back what it has not started."""
    for worker in story.workers.values():
        for life in worker.incarnations:
            asked = _asked(story, life)
            if asked is None or life.exited is None:
                continue
            for job in story.jobs.values():
                yield from _kept(story, job, life, asked)


def _asked(story: Story, life: Incarnation) -> int | None:
    """The entry at which this process was asked to stop, if it ended by itself afterwards, otherwise unhurt."""
    if life.killed is not None or life.exited is None or life.code is None or life.code < 0:
        return None
    signals = [seen for seen in story.worker(life.worker).signals if life.started < seen.n < life.exited]
    if not signals or any(seen.what.signal not in _REQUESTS for seen in signals):
        return None
    if any(fault.n < life.exited and fault.what.worker in {0, life.worker} for fault in story.faults):
        return None
    return signals[0].n


def _kept(story: Story, job: Job, life: Incarnation, asked: int) -> Iterator[Finding]:
    for index, grant in enumerate(job.grants):
        mine = grant.worker == life.worker and grant.incarnation in {0, life.number}
        if not mine or grant.known_by > asked or any(call.grant == index for call in job.calls):
            continue
        ended = [t for place in job.span(index) if (t := job.transitions[place]).change not in {"renew", "other"}]
        if any(t.began < (life.exited or 0) or t.same_holder(grant) for t in ended):
            continue
        after = job.grants[index + 1] if index + 1 < len(job.grants) else None
        if after is not None and after.began < (life.exited or 0):
            continue
        row = job.final_row()
        if after is None and (row is None or row.state != "running"):
            continue
        sentence = (
            f"worker {life.worker} had to give back job {job.key!r}, because it had claimed it at {story.clock(grant.began)}, had"
            f" not called for it, and was asked to stop at {story.clock(asked)}; however, it was gone at"
            f" {story.clock(life.exited or 0)}, and the job was still its own"
        )
        yield Finding(NAME, sentence, (grant.n, asked, life.exited or asked), job.key, (life.worker,))
        return
