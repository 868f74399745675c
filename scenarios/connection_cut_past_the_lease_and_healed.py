"""The network of one worker is cut until its lease has ended, then mended."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_result_refused_or_abstained
from harness.history.facts.takeovers import network_cut_past_lease, taken_over
from harness.invariants.effect_once import effect_once
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V5", "Q9", "Q10"],
    must_hold=[no_stale_write, effect_once, finished_stays_finished, no_lost_job],
    must_happen=[network_cut_past_lease, taken_over, late_result_refused_or_abstained],
    needs=[GRANTS, TAKES_OVER],
    record="stale-token",
)
async def connection_cut_past_the_lease_and_healed(lab: Lab) -> None:
    """A worker's network swallows everything until its lease has ended and another has taken over; then it heals.

    What happens
        The worker's call has taken effect when its network goes silent, to the database and to the sink. Its renewals and
        its result vanish into open sockets. Its lease ends, a second worker takes over and is held before its result. The
        network heals, and everything that was on its way arrives, late.

    Why it matters
        Unlike a dead worker, an isolated one goes on believing, and its packets outlive its lease.

    What must hold
        Nothing of what arrives late changes a row. One effect.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED, job)
    await lab.superseded(first, job, release=Point.CALLED, by="cut")
    await lab.drained()
