"""A worker whose local time is not the server's."""

from harness.contracts.scenario import scenario
from harness.history.facts.said import waited_out
from harness.invariants.lease_by_database_clock import lease_by_database_clock
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE


@scenario(
    serves=["V7", "Q10"],
    must_hold=[lease_by_database_clock, one_owner, no_lost_job],
    must_happen=[waited_out("3 jobs to end")],
    needs=[GRANTS, LEASE],
)
async def worker_in_another_time_zone(lab: Lab) -> None:
    """A worker runs in another time zone than the database, five and a half hours apart.

    What happens
        The worker's process has TZ=Asia/Kolkata; the server's time zone is another one. It runs three jobs beside a
        worker that has the server's.

    Why it matters
        A timestamp without a zone means one instant here and another one there. A lease that is off by hours is
        over at once, or never.

    What must hold
        Every lease ends where the database's clock says.
    """
    await lab.enqueue(3)
    lab.sink.service_seconds = 0.2
    await lab.worker(env={"TZ": "Asia/Kolkata"}).start()
    await lab.worker().start()
    await lab.drained()
