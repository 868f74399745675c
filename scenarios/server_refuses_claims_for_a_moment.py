"""A serialization failure where jobs are claimed."""

import asyncio

from harness.contracts.scenario import scenario
from harness.faults.raised import raised_serialization_failure
from harness.history.facts.said import fault_landed
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS

ENQUEUE_EVERY_SECONDS = 0.3


@scenario(
    serves=["V8", "Q7", "Q19"],
    must_hold=[no_lost_job, calls_follow_grants, no_double_execution],
    must_happen=[fault_landed("40001 raised")],
    needs=[GRANTS],
)
async def server_refuses_claims_for_a_moment(lab: Lab) -> None:
    """The server refuses two claims with a serialization failure (40001), then works again.

    What happens
        Two workers look for work, and the first two claims that would succeed are refused with 40001, by a trigger
        of ours.

    Why it matters
        Under a stricter isolation level, or with partitions that rows move between, this is an ordinary answer. A
        worker that dies of it is a queue that stops at its busiest moment.

    What must hold
        Nothing is called for under a refused claim; every job ends.
    """
    await lab.worker().start()
    await lab.worker().start()
    landing = asyncio.ensure_future(lab.begin(raised_serialization_failure))
    while not landing.done():
        await lab.enqueue(1)
        await asyncio.wait([landing], timeout=ENQUEUE_EVERY_SECONDS)
    await landing
    await lab.drained()
