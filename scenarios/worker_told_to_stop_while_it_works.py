"""SIGTERM under a long job, with more jobs claimed than started."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.lives import told_to_stop
from harness.invariants.gives_back_at_shutdown import gives_back_at_shutdown
from harness.invariants.keeps_what_it_works_on import keeps_what_it_works_on
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE


@scenario(
    serves=["Q8", "Q10", "Q19"],
    must_hold=[gives_back_at_shutdown, keeps_what_it_works_on, no_double_execution, no_lost_job],
    must_happen=[told_to_stop],
    needs=[GRANTS, LEASE],
)
async def worker_told_to_stop_while_it_works(lab: Lab) -> None:
    """A worker is told to stop (SIGTERM) in the middle of a job that takes longer than its lease.

    What happens
        Four jobs wait. The first worker's call is held at the sink when it is sent SIGTERM, and stays there for
        longer than a lease; then it is answered. A second worker runs beside it.

    Why it matters
        Every deployment does this. A worker that stops renewing before its handlers have ended has its job run a
        second time; one that leaves with claimed jobs in its pocket keeps them from everybody until their leases
        end.

    What must hold
        What had not been started is given back; what runs is kept until it has ended.
    """
    await lab.enqueue(4)
    first = lab.worker(stops_at=Point.CALLED)
    await first.start()
    await first.reached(Point.CALLED)
    first.ask_to_stop()
    second = await lab.worker().start()
    await lab.has_looked(second)
    await lab.watch_for((lab.subject.lease_seconds or 2.0) * 1.4, "what becomes of a job whose worker was told to stop")
    await first.release(Point.CALLED)
    await lab.drained()
