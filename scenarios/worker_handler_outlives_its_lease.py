"""A long job, and nothing else."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.outside import in_flight_past_its_lease
from harness.invariants.effect_once import effect_once
from harness.invariants.keeps_what_it_works_on import keeps_what_it_works_on
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE


@scenario(
    serves=["V5", "Q10", "Q19"],
    must_hold=[keeps_what_it_works_on, one_owner, no_stale_write, effect_once, no_lost_job],
    must_happen=[in_flight_past_its_lease],
    needs=[GRANTS, LEASE],
)
async def worker_handler_outlives_its_lease(lab: Lab) -> None:
    """One job takes two and a half leases, while another worker has nothing to do.

    What happens
        The first worker's call is held at the sink for two and a half leases. A second worker looks for work all
        the while. Then the call is answered.

    Why it matters
        Every timeout is too short one day. A queue that renews its leases must do so under its own longest job; one
        that goes by age alone gives a live job to a second worker.

    What must hold
        A worker that renews keeps its job. One that does not may lose it, but only after its lease, and then its
        result is refused.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED, job)
    second = await lab.worker().start()
    await lab.has_looked(second)
    await lab.watch_for(
        (lab.subject.lease_seconds or 2.0) * 2.2, "whether the second worker takes the job of a living one"
    )
    await first.release(Point.CALLED)
    await lab.drained()
    await lab.stays_quiet()
