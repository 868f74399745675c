"""The clock of the database's machine jumps while two workers are busy."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.faults.clock_moved import clock_moved_ahead
from harness.history.facts.said import fault_landed
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE, MOVABLE_CLOCK, TAKES_OVER


@scenario(
    serves=["V7", "Q9", "Q10"],
    must_hold=[no_stale_write, effect_once, no_lost_job],
    must_happen=[fault_landed("clock advanced")],
    needs=[GRANTS, LEASE, TAKES_OVER, MOVABLE_CLOCK],
    hurts="clock",
)
async def server_clock_jumps_past_every_lease(lab: Lab) -> None:
    """Every lease ends at one stroke, because the database's clock is put right by more than a lease.

    What happens
        Two workers hold a job each, their calls are at the sink. Both are stopped, the server's clock jumps by two leases,
        and both go on at once: each finds that its lease is over, and that the other's is.

    Why it matters
        A machine that wakes up, a clock that is put right: all leases end together, and everybody takes over from everybody.

    What must hold
        A worker that lost its job writes nothing more to it; each effect happens once; nothing is lost.
    """
    await lab.enqueue(2)
    workers = [lab.worker(stops_at=Point.CALLED) for _ in range(2)]
    for worker in workers:
        await worker.start()
        await worker.reached(Point.CALLED)
    async with lab.injured(clock_moved_ahead):
        for worker in workers:
            await worker.release(Point.CALLED)
    await lab.enqueue(2)
    await lab.drained()
