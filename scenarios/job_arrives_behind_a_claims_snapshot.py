"""A job that is added while a claim looks at an empty queue."""

import contextlib

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.recorder import DeadlinePassed
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["Q7", "Q16"],
    must_hold=[no_lost_job],
    must_happen=[],
    needs=[GRANTS],
)
async def job_arrives_behind_a_claims_snapshot(lab: Lab) -> None:
    """A job is added, and told of, between a worker's look at the queue and its going to sleep.

    What happens
        A worker's first look at the empty queue is parked inside the server, its snapshot taken. A job is enqueued
        and committed meanwhile, with whatever notification the queue sends. Then the worker goes on, sees nothing,
        and waits for work.

    Why it matters
        A worker that looks first and listens afterwards never hears of this job. Only a poll, or listening before
        the look, finds it.

    What must hold
        The job is found and ends in its time.
    """
    worker = lab.worker(stops_at=Point.SNAPSHOT)
    await worker.start()
    with contextlib.suppress(DeadlinePassed):  # a queue whose look takes no gate has the job added at some moment of it
        await worker.reached(Point.SNAPSHOT, within_seconds=3)
    await lab.enqueue(1)
    await worker.release(Point.SNAPSHOT)
    await lab.drained()
