"""The server ends a claim's transaction; the worker lives."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.events import BackendEnded
from harness.history.facts.points import backend_ended_before_commit
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V4", "Q7", "Q19"],
    must_hold=[calls_follow_grants, no_double_execution, no_lost_job],
    must_happen=[backend_ended_before_commit],
    needs=[GRANTS],
)
async def connection_broken_before_the_claim_commits(lab: Lab) -> None:
    """A worker's connection breaks with its rows locked, before the commit; the claim is rolled back, and the worker lives on.

    What happens
        The worker is stopped with its rows claimed and its transaction open, as the server shows. Its backend is
        ended, which rolls the claim back. The worker lives, and a second one runs beside it.

    Why it matters
        A broken connection says nothing of what became of the statement. A worker that goes on with the jobs it had
        picked calls for jobs that it was never given.

    What must hold
        No call without a committed grant; the job is claimed again, and ends.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.CLAIMED)
    await victim.start()
    stood = await victim.reached(Point.CLAIMED, job)
    ended_by = await lab.end_backend(stood.pid)
    lab.recorder.record(BackendEnded(victim.number, stood.pid, ended_by))
    await victim.release(Point.CLAIMED)
    await lab.worker().start()
    await lab.drained()
