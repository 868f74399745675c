"""Nothing is hurt: one worker is busy, another starts beside it."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import reached
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_transaction_across_call import no_transaction_across_call
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab

JOBS = 3


@scenario(
    serves=["V2", "V9", "V11", "Q2", "Q7"],
    must_hold=[
        one_owner,
        calls_follow_grants,
        no_double_execution,
        effect_once,
        no_transaction_across_call,
        no_lost_job,
    ],
    must_happen=[reached(Point.CALLING)],
)
async def workers_second_starts_while_the_first_is_calling(lab: Lab) -> None:
    """A worker is in the middle of its first job when a second worker starts.

    What happens
        The first worker's call is held at the sink, well within its lease. A second worker starts and looks for work for a
        while. Then the call is answered, and both end whatever there is. No process, connection or clock is touched.

    Why it matters
        This is a queue's every minute. A claim that remembers nothing of what it has given out passes all tests with one
        worker and hands the same job to the second one here, whatever locks it takes on the way.

    What must hold
        Each job is executed once, by a worker that was granted it, and no transaction is open while it is.
    """
    await lab.enqueue(JOBS)
    first = lab.worker(stops_at=Point.CALLING)
    await first.start()
    await first.reached(Point.CALLING)
    second = await lab.worker().start()
    await lab.has_looked(second)
    await lab.watch_for((lab.subject.lease_seconds or 2.0) / 4, "whether the second worker takes the first one's job")
    await first.release(Point.CALLING)
    await lab.drained()
