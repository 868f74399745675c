"""SIGSTOP past the lease, takeover, SIGCONT."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.takeovers import paused_past_lease, taken_over
from harness.invariants.effect_once import effect_once
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.stops_after_losing import stops_after_losing
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V5", "Q9", "Q10", "O1"],
    must_hold=[no_stale_write, stops_after_losing, effect_once, finished_stays_finished, no_lost_job],
    must_happen=[paused_past_lease, taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, TAKES_OVER],
    record="stale-token",
)
async def worker_paused_past_its_lease_and_resumed(lab: Lab) -> None:
    """A worker is stopped (SIGSTOP) until its lease has ended and another has taken over; then it goes on.

    What happens
        The worker's call has taken effect, its reply is on the way, and the process is stopped: a long garbage collection,
        a suspended machine, a debugger. Its lease ends, a second worker takes over and is held before its result. The first
        is resumed, reads the reply, and does what it does.

    Why it matters
        The end of a lease does not prove that the old process has stopped. It will act, late, and believe it owns the job.

    What must hold
        Whatever the first worker writes now changes no row (or it gives up by itself). One effect.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED, job)
    await lab.superseded(first, job, release=Point.CALLED)
    await lab.drained()
