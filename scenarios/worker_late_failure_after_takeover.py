"""A failure report held on the wire until another worker owns the job."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.points import reached
from harness.history.facts.takeovers import taken_over
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER, WRITES_FAILURES


@scenario(
    serves=["V5", "Q9"],
    must_hold=[no_stale_write, finished_stays_finished, no_lost_job],
    must_happen=[reached(Point.RESULT_SENT), taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, TAKES_OVER, WRITES_FAILURES],
    record="stale-token",
)
async def worker_late_failure_after_takeover(lab: Lab) -> None:
    """A worker's failure report arrives after its lease has ended and another worker owns the job.

    What happens
        The sink answers the first call with 503. The report of that failure is on the wire when the process is paused. Its
        lease ends, a second worker takes over. Now the first report reaches the server.

    Why it matters
        The complete path is usually fenced; the failure path is the one that is forgotten. It puts a running job back into
        the queue, and a third worker runs it beside the second.

    What must hold
        The late failure changes no row.
    """
    (job,) = await lab.enqueue(1)
    lab.sink.answer_with(503, worker=1)
    first = lab.worker(stops_at=Point.RESULT_SENT)
    await first.start()
    await first.reached(Point.RESULT_SENT)
    await lab.superseded(first, job, release=Point.RESULT_SENT)
    await lab.drained()
