"""Priorities, in the wrong order of arrival."""

from harness.contracts.scenario import scenario
from harness.history.facts.outcomes import more_jobs_than_slots
from harness.invariants.claim_order import claim_order
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, PRIORITIES


@scenario(
    serves=["Q4", "V2"],
    must_hold=[claim_order, no_lost_job],
    must_happen=[more_jobs_than_slots(2)],
    needs=[GRANTS, PRIORITIES],
)
async def jobs_of_three_priorities(lab: Lab) -> None:
    """Three jobs arrive with the least urgent first, and one worker runs them.

    What happens
        Jobs of priority 10, 5 and 0 are enqueued in this order. Then one worker starts.

    Why it matters
        An order that holds only when jobs arrive in it is no order.

    What must hold
        The worker is given 0, then 5, then 10.
    """
    for priority in (10, 5, 0):
        await lab.enqueue(1, priority=priority)
    await lab.worker().start()
    await lab.drained()
