"""Notifications stop arriving, and nobody is told."""

from harness.contracts.scenario import scenario
from harness.faults.notifications_lost import notifications_lost
from harness.history.facts.said import fault_landed
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V6", "V10", "Q16"],
    must_hold=[no_lost_job],
    must_happen=[fault_landed("notifications lost")],
    needs=[GRANTS],
)
async def connection_notifications_lost(lab: Lab) -> None:
    """An idle worker is not woken any more, and must find its work all the same.

    What happens
        A worker has ended a job and is idle. From now on no notification reaches it, while everything else does. Two jobs
        come.

    Why it matters
        NOTIFY is a hint. A pooler, a failover, a full queue or a listener that died takes it away without an error.

    What must hold
        The jobs are found and ended by the worker itself, in its own time.
    """
    worker = lab.worker()
    await worker.start()
    await lab.enqueue(1)
    await lab.drained()
    async with lab.injured(notifications_lost, worker):
        await lab.enqueue(2)
        await lab.drained()
