"""Two claimers, two slots each, one group."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.barriers import released_together
from harness.invariants.claim_order import claim_order
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, GROUPS


@scenario(
    serves=["Q18", "V2"],
    must_hold=[claim_order, one_owner, no_double_execution, no_lost_job],
    must_happen=[released_together(2)],
    needs=[GRANTS, GROUPS],
)
async def jobs_of_one_group_claimed_at_one_barrier(lab: Lab) -> None:
    """Two workers with two slots each claim at the same instant, from jobs of one group and one of another.

    What happens
        Three jobs of one group and one of another wait. Both workers are parked inside the server with their
        snapshots taken, and released by one statement.

    Why it matters
        A cap that is checked by counting what runs does not see the claim beside it; a batch that looks at what
        runs, and not at itself, takes two of one key; a local buffer runs them side by side.

    What must hold
        Where the order is per key, no two of a group run at once, and they run in the order in which they were
        added.
    """
    await lab.enqueue(3, group="a")
    await lab.enqueue(1, group="b")
    lab.sink.service_seconds = 0.15
    workers = [lab.worker(slots=2, stops_at=Point.SNAPSHOT) for _ in range(2)]
    for worker in workers:
        await worker.start()
    await lab.all_reached(Point.SNAPSHOT, workers, within_seconds=30)
    await lab.release_together(Point.SNAPSHOT, workers)
    await lab.drained()
