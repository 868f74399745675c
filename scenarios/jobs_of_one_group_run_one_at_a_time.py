"""Jobs that share a key, and one that does not."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import reached
from harness.invariants.claim_order import claim_order
from harness.invariants.free_jobs_are_given_out import free_jobs_are_given_out
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, GROUPS


@scenario(
    serves=["Q18", "V2"],
    must_hold=[free_jobs_are_given_out, claim_order, no_lost_job],
    must_happen=[reached(Point.CALLING)],
    needs=[GRANTS, GROUPS],
)
async def jobs_of_one_group_run_one_at_a_time(lab: Lab) -> None:
    """A group's first job is under way; the others of the group wait, and a job of another group does not.

    What happens
        Three jobs of one group wait, and the first is called for. Then a job of another group is enqueued behind
        them, while a second worker is idle. It is given out. Then the call is answered.

    Why it matters
        A claim that takes its candidates first and looks at their groups afterwards comes back empty while the head
        of the queue is busy: one slow customer stops all others.

    What must hold
        Where the order is per key, no two of a group run at once; a job of a free group is given out at once.
    """
    await lab.enqueue(3, group="a")
    first = lab.worker(stops_at=Point.CALLING)
    await first.start()
    await first.reached(Point.CALLING)
    second = await lab.worker().start()
    await lab.has_looked(second)
    (free,) = await lab.enqueue(1, group="b")
    await lab.granted(free)
    await first.release(Point.CALLING)
    await lab.drained()
