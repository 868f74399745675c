"""A result arrives between a rescuer's look and its write."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.contracts.subject import State
from harness.history.events import Moved
from harness.history.facts.points import reached
from harness.history.facts.rescues import (
    RESULT_BEFORE_RESCUE,
    RESULT_BEHIND_RESCUE,
    result_met_a_rescue,
    stood_in_a_rescue,
)
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER, WRITES_RESULTS
from harness.lab.takeover import statements_that_take_over


def ended(state: str | None) -> bool:
    return state is not None and State(state).ended


def granted_once(lab: Lab, job: str) -> bool:
    """Whether nobody was granted it again: what ended it was its first holder's result."""
    moves = [entry.what for entry in lab.recorder.entries if isinstance(entry.what, Moved) and entry.what.key == job]
    return [move.change for move in moves].count("claim") == 1


@scenario(
    serves=["V5", "Q9", "Q10"],
    must_hold=[finished_stays_finished, one_owner, no_stale_write, no_double_execution, no_lost_job],
    must_happen=[reached(Point.RESULT_SENT), stood_in_a_rescue, result_met_a_rescue],
    needs=[GRANTS, TAKES_OVER, WRITES_RESULTS],
)
async def worker_completes_while_a_rescuer_looks(lab: Lab) -> None:
    """A worker whose lease is over writes its result while another one is about to take the job over.

    What happens
        A worker dies in its call, and another takes its job over: so it is seen by which statement that is done. Then
        a worker's result is on the wire when its process is paused, and its lease ends. One more worker starts to take
        that job over: it is parked inside the server in that very statement, its snapshot taken. Now the result
        arrives. Where the rescuer has locked no row, the result is accepted, for nobody has taken the job yet; where
        it has locked the row as it looked, the result waits. Then the rescuer goes on.

    Why it matters
        A rescue that reads first and writes by id later puts a finished job back into the queue. One statement that
        locks what it reads finds the row changed, and leaves it; so does one that keeps the row locked in between.

    What must hold
        A job that is finished stays finished and is not executed again; what comes after a takeover changes nothing.
    """
    takeovers = await statements_that_take_over(lab)
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.RESULT_SENT)
    await first.start()
    await first.reached(Point.RESULT_SENT)
    await first.pause()
    await lab.lease_over(job)
    second = lab.worker()
    await second.stop_at(Point.SNAPSHOT, statements=takeovers)
    await second.start()
    stood = await second.reached(Point.SNAPSHOT, within_seconds=lab.takeover_seconds)
    await first.release(Point.RESULT_SENT)
    await first.resume()  # one that writes its result in a transaction must be there to commit it
    if stood.key == job:
        behind = await lab.waits_behind(stood.pid, first, reason="the late result to wait for the rescuer's row")
        lab.saw(RESULT_BEHIND_RESCUE, behind, worker=first, key=job)
    else:
        await lab.eventually(
            lambda: ended(lab.state_of(job)) and granted_once(lab, job),
            within_seconds=5,
            reason="the late result to be accepted, before any takeover",
        )
        told = f"job {job!r} had ended while worker {second.number} stood behind its snapshot"
        lab.saw(RESULT_BEFORE_RESCUE, told, key=job)
    await second.release(Point.SNAPSHOT)
    await lab.drained()
    await lab.stays_quiet()
