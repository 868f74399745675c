"""Killed with its claim durable and its call not made."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import killed_at
from harness.history.facts.takeovers import taken_over
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V4", "Q10", "Q11", "Q12"],
    must_hold=[no_lost_job, calls_follow_grants, effect_once, one_owner],
    must_happen=[killed_at(Point.COMMIT_LOST), taken_over],
    needs=[GRANTS, TAKES_OVER],
    record="reclaim",
)
async def worker_killed_after_claim_before_call(lab: Lab) -> None:
    """A worker dies between the commit of its claim and its external call.

    What happens
        The claim is durable (truth shows it), the worker has not been told yet, and is killed. No call was made.
        Another worker starts.

    Why it matters
        The row says running, and nobody runs it. A queue without a lease, or whose lease nobody enforces, keeps this job
        for ever.

    What must hold
        The job is taken over once its lease has ended, not earlier, is called and ends.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.COMMIT_LOST)
    await victim.start()
    await victim.reached(Point.COMMIT_LOST, job)
    await victim.kill()
    await lab.worker().start()
    await lab.taken_over(job, from_worker=victim)
    await lab.drained()
