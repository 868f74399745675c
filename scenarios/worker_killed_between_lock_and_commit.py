"""Killed with its rows locked; the server rolls back."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import backend_ended_before_commit, killed_at
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V4", "Q7", "Q11"],
    must_hold=[no_lost_job, calls_follow_grants, effect_once],
    must_happen=[killed_at(Point.CLAIMED), backend_ended_before_commit],
    needs=[GRANTS],
    record="reclaim",
)
async def worker_killed_between_lock_and_commit(lab: Lab) -> None:
    """A worker dies with its rows locked, and the server rolls its claim back.

    What happens
        The worker is stopped between locking its job and the commit of its claim, as the server shows, and killed
        (SIGKILL). Its backend ends with it. Another worker starts.

    Why it matters
        Nothing was granted, so nothing may be waited for: the job is claimable as soon as the backend is gone.

    What must hold
        The job is called once, by the second worker, and ends.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.CLAIMED)
    await victim.start()
    await victim.reached(Point.CLAIMED, job)
    await victim.kill(backend="ends")
    await lab.worker().start()
    await lab.drained()
