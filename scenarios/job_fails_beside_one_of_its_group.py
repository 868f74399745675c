"""A job is tried again while another of its group waits."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.outside import answered
from harness.invariants.claim_order import claim_order
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, GROUPS


@scenario(
    serves=["Q13", "Q18"],
    must_hold=[no_lost_job, claim_order, effect_once],
    must_happen=[answered("5xx")],
    needs=[GRANTS, GROUPS],
)
async def job_fails_beside_one_of_its_group(lab: Lab) -> None:
    """The first job of a group fails and must be tried again, while a second one of the group has been added.

    What happens
        The first job's call is at the sink when a second job of its group is enqueued. The call is answered with
        503; every later one with 200.

    Why it matters
        A key that may wait only once is free again while its job runs, and somebody takes it. Then the first job
        cannot go back: every retry and every rescue of it fails, and whoever waits for it waits for ever.

    What must hold
        Both jobs end.
    """
    (job,) = await lab.enqueue(1, group="a")
    lab.sink.answer_with(503, key=job, times=1)
    worker = lab.worker(stops_at=Point.CALLING)
    await worker.start()
    await worker.reached(Point.CALLING, job)
    await lab.enqueue(1, group="a")
    await worker.release(Point.CALLING)
    await lab.drained()
