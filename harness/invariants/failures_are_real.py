"""A job whose call succeeded is not written down as failed by the worker that heard so.

Rule: no deadlock, serialization failure or broken connection turns into a job's failure. A worker whose only
call under its grant was answered with 2xx, and which lived on, must not write a failure or put the job back: it may complete
it, or leave it to its lease. A worker that was paused, cut off or killed before it could read the answer is not judged, nor is
what is put back after its lease had ended (a rescue), or because the worker was asked to stop. Source: B07, B116.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import Call, Job, Transition
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

NAME = "failures_are_real"


@invariant(
    serves=("Q9", "Q13", "V8"),
    broken_queue="database_error_read_as_failure",
    mend=(
        "When writing a result fails (40P01, 40001, a lost connection), retry that same guarded write, or leave the "
        "job to its lease. Catch database errors apart from the handler's, and never record them as the job's "
        "failure."
    ),
)
def failures_are_real(story: Story) -> Iterator[Finding | Unknown]:
    """No job whose call succeeded is written down as failed."""
    for job in story.jobs.values():
        for index, grant in enumerate(job.grants):
            calls = [call for call in job.calls if call.grant == index]
            if not calls or any(not _succeeded(story, call) for call in calls):
                continue
            heard = max(call.answered or 0 for call in calls)
            for place in job.span(index):
                write = job.transitions[place]
                written = write.change == "fail" or (write.change == "release" and not _asked_to_stop(story, write))
                if not written or not write.same_holder(grant) or write.began <= heard:
                    continue
                if lease_at(story, job, place).lease not in {Lease.OVER, Lease.UNKNOWN}:
                    yield _finding(story, job, grant, calls[-1], write)
                    break


def _succeeded(story: Story, call: Call) -> bool:
    """Whether the call was answered with 2xx and its worker could read that."""
    if call.answered is None or call.status is None or not 200 <= call.status < 300:
        return False
    worker = story.worker(call.worker)
    if not worker.alive_at(call.answered):
        return False
    stopped = [seen for seen in worker.signals if seen.n < call.answered and seen.what.signal in {"SIGSTOP", "SIGCONT"}]
    cut = any(fault.what.worker == call.worker and fault.n < call.answered for fault in story.faults)
    return not stopped and not cut


def _asked_to_stop(story: Story, write: Transition) -> bool:
    return any(seen.n < write.began for seen in story.worker(write.worker).signals)


def _finding(story: Story, job: Job, grant: Transition, call: Call, write: Transition) -> Finding:
    new = write.moved.new
    sentence = (
        f"job {job.key!r} had not failed, because worker {call.worker}'s call was answered with {call.status} at"
        f" {story.clock(call.answered or call.n)}; however, the same worker's {write.change} moved it to"
        f" {new.state if new else 'nothing'}, by transaction {write.moved.xid}"
    )
    witness = (grant.n, call.n, call.answered or call.n, write.n)
    return Finding(NAME, sentence, tuple(dict.fromkeys(witness)), job.key, (call.worker,))
