"""The same pause as with a toy lease, with the lease and the heartbeat of a real configuration."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.takeovers import leased_as_declared, paused_past_lease, taken_over
from harness.invariants.effect_once import effect_once
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE, TAKES_ITS_LEASE, TAKES_OVER


@scenario(
    serves=["V5", "V7", "Q9", "Q10"],
    must_hold=[no_stale_write, effect_once, finished_stays_finished, no_lost_job],
    must_happen=[leased_as_declared, paused_past_lease, taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, LEASE, TAKES_ITS_LEASE, TAKES_OVER],
    hurts="clock",
    lease_seconds=120,
    record="stale-token",
)
async def worker_paused_past_a_lease_of_minutes(lab: Lab) -> None:
    """A worker with a lease of two minutes is stopped, the database's clock moves past it, and another takes over.

    What happens
        The lease is 120 s and the heartbeat comes every 30 s. The worker's call has taken effect and the process is stopped.
        The clock of the server, which is ours, moves past the lease within milliseconds; a second worker takes over and is
        held before its result. The first is resumed. Where the clock cannot be moved, the leases are those that the subject
        declares, and the story waits for them.

    Why it matters
        A lease of two seconds hides what a lease of minutes shows: timeouts, poll times and caches that are longer than the
        toy, and clocks that are asked twice.

    What must hold
        Whatever the first worker writes now changes no row (or it gives up by itself). One effect.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED, job)
    await lab.superseded(first, job, release=Point.CALLED)
    await lab.drained()
