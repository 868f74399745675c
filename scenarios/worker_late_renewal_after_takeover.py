"""A heartbeat held on the wire until another worker owns the job."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_write_refused_or_abstained
from harness.history.facts.points import reached
from harness.history.facts.takeovers import taken_over
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, RENEWS, TAKES_OVER


@scenario(
    serves=["V5", "Q9", "Q10"],
    must_hold=[no_stale_write, no_lost_job],
    must_happen=[reached(Point.RENEWING), taken_over, late_write_refused_or_abstained("renew")],
    needs=[GRANTS, TAKES_OVER, RENEWS],
    record="stale-token",
)
async def worker_late_renewal_after_takeover(lab: Lab) -> None:
    """A worker's heartbeat arrives after its lease has ended and another worker owns the job.

    What happens
        The first worker's call is at the sink; a renewal of its lease is on the wire when its process is paused. Its lease
        ends, a second worker takes over and is held before its result. Now the renewal reaches the server.

    Why it matters
        A heartbeat that matches the job's id only keeps a lost lease alive: it prolongs the second worker's lease, and if
        that worker dies, its takeover comes late, or never.

    What must hold
        The late renewal changes no row.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=[Point.CALLED, Point.RENEWING])
    await first.start()
    await first.reached(Point.CALLED, job)
    await first.reached(Point.RENEWING)
    await lab.superseded(first, job, release=Point.RENEWING)
    await first.release(Point.CALLED)
    await lab.drained()
