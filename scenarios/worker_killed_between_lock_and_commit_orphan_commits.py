"""Killed with its commit on the way; the server never learns of the death."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import killed_at, orphan_committed
from harness.history.facts.takeovers import taken_over
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V4", "Q10", "Q11"],
    must_hold=[no_lost_job, calls_follow_grants, effect_once, one_owner],
    must_happen=[killed_at(Point.COMMITTING), orphan_committed, taken_over],
    needs=[GRANTS, TAKES_OVER],
    record="reclaim",
)
async def worker_killed_between_lock_and_commit_orphan_commits(lab: Lab) -> None:
    """A worker dies while its claim commits; the server does not notice, and the claim of a dead worker stands.

    What happens
        The worker is stopped inside the COMMIT of its claim and killed (SIGKILL). The server, busy with the commit, does
        not look at its client: the gate opens and the orphaned claim becomes durable. Another worker starts.

    Why it matters
        Killing a client does not end its statement. The job now belongs to nobody alive, and only the lease can save it.

    What must hold
        The job is taken over once its lease has ended, not earlier, is called once and ends.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.COMMITTING)
    await victim.start()
    await victim.reached(Point.COMMITTING, job)
    await victim.kill(backend="lives")
    await lab.claimed(job, by=victim)
    await lab.worker().start()
    await lab.taken_over(job, from_worker=victim)
    await lab.drained()
