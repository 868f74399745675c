"""Two processes, one worker id: the first is late, the second owns the job."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.points import reached
from harness.history.facts.takeovers import taken_over
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.token_fences import token_fences
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER, WRITES_RESULTS


@scenario(
    serves=["V5", "Q9"],
    must_hold=[no_stale_write, token_fences, no_lost_job],
    must_happen=[reached(Point.RESULT_SENT), taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, TAKES_OVER, WRITES_RESULTS],
    record="stale-token",
)
async def worker_restarted_under_the_same_id(lab: Lab) -> None:
    """A worker is presumed dead and started again under the same id; then the first process turns out to be alive.

    What happens
        The first process is paused with its result on the wire. Its supervisor starts a second one with the same worker
        id, which takes the job over and is held before its result. Now the first result reaches the server.

    Why it matters
        A fence made of the worker's id is no fence: host names, pod names and slot numbers come back.

    What must hold
        The late result changes no row, although it carries the id of the job's present owner.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.RESULT_SENT)
    await first.start()
    await first.reached(Point.RESULT_SENT)
    await lab.superseded(first, job, release=Point.RESULT_SENT, same_id=True)
    await lab.drained()
