"""A plan that was made for an empty queue."""

from harness.contracts.scenario import scenario
from harness.history.facts.said import saw
from harness.invariants.claims_are_started import claims_are_started
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS

STALE = "the statistics are older than the jobs"
statistics_are_stale = saw(STALE)


@scenario(
    serves=["V2", "Q7"],
    must_hold=[claims_are_started, one_owner, no_lost_job],
    must_happen=[statistics_are_stale],
    needs=[GRANTS],
)
async def server_statistics_say_the_queue_is_empty(lab: Lab) -> None:
    """The statistics say that the queue is empty, and a burst of jobs arrives.

    What happens
        The table is analysed while it is empty, with autovacuum off for it. Then twenty jobs arrive, and one worker
        runs them.

    Why it matters
        A planner that expects one row may put a subquery with LIMIT on the inner side of a nested loop, and run it
        again for each row: one claim then marks every job, the worker knows of one, and the rest wait for their
        leases to end.

    What must hold
        Whatever a claim marks, the worker is told of and starts.
    """
    await lab.forget_statistics()
    await lab.enqueue(20)
    lab.saw(
        STALE, "the table was analysed while it was empty, autovacuum is off for it, and twenty jobs were added since"
    )
    await lab.worker().start()
    await lab.drained()
