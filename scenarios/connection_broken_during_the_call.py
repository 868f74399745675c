"""Every connection of a worker breaks while it works."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.faults.backend_terminated import backend_terminated_all_of_a_worker
from harness.history.facts.lives import NOTHING_TO_BREAK, connections_broken_or_none
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V5", "Q9", "Q10", "Q19"],
    must_hold=[no_stale_write, effect_once, one_owner, no_lost_job],
    must_happen=[connections_broken_or_none],
    needs=[GRANTS],
)
async def connection_broken_during_the_call(lab: Lab) -> None:
    """A worker loses all its connections in the middle of a job, and goes on.

    What happens
        The worker's call has taken effect when the server ends every backend of it, as a failover or an operator
        does; one that holds no connection while it calls has nothing to lose here. A second worker looks for work
        for a while. Then the call is answered.

    Why it matters
        A lock of a session ends with the session, and the job is given away although its handler runs. A worker
        that does not connect again is a silent loss of a slot.

    What must hold
        Whatever the first worker writes after somebody else was granted the job changes no row. The job ends.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED, job)
    if any(session.pid for session in first.sessions):
        await lab.begin(backend_terminated_all_of_a_worker, first)
    else:
        lab.saw(NOTHING_TO_BREAK, f"worker {first.number} has no connection open while it calls", worker=first)
    second = await lab.worker().start()
    await lab.has_looked(second)
    await lab.watch_for((lab.subject.lease_seconds or 2.0) / 2, "whether the second worker takes the job")
    await first.release(Point.CALLED)
    await lab.drained()
    await lab.stays_quiet()
