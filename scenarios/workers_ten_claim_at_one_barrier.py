"""Ten claimers, released by one statement of the server."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.barriers import released_together
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.claim_order import claim_order
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS

CLAIMERS = 10


@scenario(
    serves=["V1", "V2", "V8", "V9", "V11", "Q7"],
    must_hold=[one_owner, calls_follow_grants, no_double_execution, effect_once, no_lost_job, claim_order],
    must_happen=[released_together(CLAIMERS)],
    needs=[GRANTS],
    record="skip",
)
async def workers_ten_claim_at_one_barrier(lab: Lab) -> None:
    """Ten workers claim at the same instant.

    What happens
        Ten workers, each a process of its own, send their claim. All ten backends are parked inside the server, each with
        its snapshot taken, until one look at pg_stat_activity shows the ten of them. One statement opens the gate.

    Why it matters
        Whatever a claim reads before it locks, ten others have read as well. A queue that checks first and writes later
        passes every test that runs one worker, and hands one job to several here.

    What must hold
        Every job is owned once, none is missing, each is called once, in the order that the queue promises.
    """
    await lab.enqueue(CLAIMERS)
    workers = [lab.worker(stops_at=Point.SNAPSHOT) for _ in range(CLAIMERS)]
    for worker in workers:
        await worker.start()
    await lab.all_reached(Point.SNAPSHOT, workers, within_seconds=30)
    await lab.release_together(Point.SNAPSHOT, workers)
    await lab.drained()
