"""A completion held on the wire until another worker owns the job."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.points import reached
from harness.history.facts.takeovers import taken_over
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.token_fences import token_fences
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER, WRITES_RESULTS


@scenario(
    serves=["V5", "Q9", "Q10", "O1"],
    must_hold=[no_stale_write, token_fences, finished_stays_finished, no_lost_job],
    must_happen=[reached(Point.RESULT_SENT), taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, TAKES_OVER, WRITES_RESULTS],
    record="stale-token",
)
async def worker_late_complete_after_takeover(lab: Lab) -> None:
    """A worker's completion arrives after its lease has ended and another worker owns the job.

    What happens
        The first worker's "complete" is on the wire when its process is paused. Its lease ends, a second worker takes the
        job over and is held before its own result. Now the first completion reaches the server.

    Why it matters
        A completion that matches the job's id only, or only its state, finishes another worker's run: what that worker is
        still doing is lost, or done twice.

    What must hold
        The late completion changes no row. The second worker's result stands.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.RESULT_SENT)
    await first.start()
    await first.reached(Point.RESULT_SENT)
    await lab.superseded(first, job, release=Point.RESULT_SENT)
    await lab.drained()
