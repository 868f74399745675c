"""An earlier holder writes nothing once somebody else has been granted the job.

Rule: the holder is the worker whose connection made the latest grant. Stale is an accepted
complete, fail, release, renewal or other write, rewrites of a finished row included, by an earlier holder that is no longer
the latest. Not blamed: our own, an operator's and retention's writes (worker 0), deleting a finished row, and a rescue:
giving back a running job whose lease is over is judged by the lease rule, in one_owner. Source: Q9, V5, bug zoo B19-B21.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.job import ENDED, Job, Transition
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

NAME = "no_stale_write"


@invariant(
    serves=("Q9", "V5", "V11"),
    broken_queue="complete_by_id_only",
    mend=(
        "Let every write after the claim name the grant it acts under (`where id = $1 and owner = $2 and token = "
        "$3`), and treat zero rows as lost."
    ),
)
def no_stale_write(story: Story) -> Iterator[Finding | Unknown]:
    """No earlier holder overwrites anything after a takeover."""
    for job in story.jobs.values():
        if job.calm or len(job.grants) < 2:
            continue
        for place, transition in enumerate(job.transitions):
            if transition.worker == 0 or transition.change in {"claim", "enqueue"}:
                continue
            holder = job.holder_before(place)
            if holder is None or transition.same_holder(holder):
                continue
            earlier = _earlier_grant(job, place, transition)
            if earlier is None or _deletes_finished(transition) or _rescues(story, job, place):
                continue
            yield _finding(job, transition, earlier, holder)


def _earlier_grant(job: Job, place: int, transition: Transition) -> Transition | None:
    """The latest of the writer's own grants before its write."""
    mine = [g for g, at in zip(job.grants, job.places, strict=True) if at < place and g.same_holder(transition)]
    return mine[-1] if mine else None


def _deletes_finished(transition: Transition) -> bool:
    old = transition.moved.old
    return transition.change == "retire" and old is not None and old.state in ENDED


def _rescues(story: Story, job: Job, place: int) -> bool:
    """Giving back, or giving up, a running job whose lease is not surely alive is what an honest rescuer does."""
    moved = job.transitions[place].moved
    gives_back = moved.change in {"release", "fail"} and moved.old is not None and moved.old.state == "running"
    return gives_back and lease_at(story, job, place).lease in {Lease.OVER, Lease.UNKNOWN}


def _finding(job: Job, write: Transition, earlier: Transition, holder: Transition) -> Finding:
    old, new = write.moved.old, write.moved.new
    sentence = (
        f"worker {write.worker} had lost job {job.key!r}, because it was granted to worker"
        f" {holder.worker}{holder.with_token} after its own grant{earlier.with_token}; however, its {write.change} moved the row from"
        f" {old.state if old else 'nothing'} to {new.state if new else 'nothing'} and was accepted, by transaction"
        f" {write.moved.xid}, {(write.moved.wall_us - holder.moved.wall_us) / 1000:.0f} ms after that grant"
    )
    return Finding(
        NAME, sentence, (earlier.n, holder.n, write.n), job.key, tuple(sorted({write.worker, holder.worker}))
    )
