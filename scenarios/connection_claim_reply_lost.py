"""The claim is durable, its reply never arrives."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import reply_lost
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V4", "Q7", "Q10", "Q19"],
    must_hold=[no_lost_job, calls_follow_grants, effect_once, one_owner],
    must_happen=[reply_lost("claim")],
    needs=[GRANTS, TAKES_OVER],
    record="reclaim",
)
async def connection_claim_reply_lost(lab: Lab) -> None:
    """The connection breaks after the claim became durable and before the worker was told.

    What happens
        The server has committed the claim; every byte of its reply is withheld, then the connection is broken. The worker
        lives on, or is restarted by its supervisor if it exits. A second worker runs beside it.

    Why it matters
        An unknown commit is neither a success nor a failure. A worker that retries may hold two jobs and know of one; a
        worker that assumes success works on rows it was never given.

    What must hold
        The job is not called without a grant, is not taken while its lease runs, and ends.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.COMMIT_LOST)
    await victim.start()
    await victim.reached(Point.COMMIT_LOST, job)
    await victim.lose_reply(Point.COMMIT_LOST)
    await lab.worker().start()
    await lab.drained()
