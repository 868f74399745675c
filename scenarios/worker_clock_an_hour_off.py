"""Two workers whose own clocks are an hour off, one behind, one ahead."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import reached
from harness.history.facts.said import fault_landed
from harness.invariants.effect_once import effect_once
from harness.invariants.lease_by_database_clock import lease_by_database_clock
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE, SKEWED_CLOCK


@scenario(
    serves=["V7", "Q10"],
    must_hold=[lease_by_database_clock, one_owner, effect_once, no_lost_job],
    must_happen=[fault_landed("clock skewed"), reached(Point.CALLING)],
    needs=[GRANTS, LEASE, SKEWED_CLOCK],
)
async def worker_clock_an_hour_off(lab: Lab) -> None:
    """One worker's clock is an hour behind, another's an hour ahead, and nothing may come of it.

    What happens
        The first worker runs with a clock an hour behind and holds a job, its call at the sink. The second runs with a
        clock an hour ahead, for half a lease. Then the call is answered, and both end whatever there is.

    Why it matters
        A lease that is written or judged by a worker's own clock is over at once for a worker that is ahead, and never for
        one that is behind. One clock decides: the database's.

    What must hold
        Every lease ends where the database's clock says; no job has two owners.
    """
    (job,) = await lab.enqueue(1)
    behind = lab.worker(stops_at=Point.CALLING, env=lab.skewed_clock(-3600))
    await behind.start()
    await behind.reached(Point.CALLING, job)
    ahead = lab.worker(env=lab.skewed_clock(3600))
    await ahead.start()
    await lab.clock_is_off(behind, -3600)
    await lab.clock_is_off(ahead, 3600)
    await lab.has_looked(ahead)
    await lab.watch_for((lab.subject.lease_seconds or 2.0) / 4, "whether the worker that is ahead takes the job")
    await behind.release(Point.CALLING)
    await lab.enqueue(2)
    await lab.drained()
