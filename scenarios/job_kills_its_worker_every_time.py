"""A job that takes its worker down with it, at every attempt."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.lives import worker_died_times
from harness.invariants.attempts_bounded import attempts_bounded
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import BOUNDS_ATTEMPTS, GRANTS, TAKES_OVER


@scenario(
    serves=["Q12", "Q13"],
    must_hold=[attempts_bounded, no_lost_job],
    must_happen=[worker_died_times(2)],
    needs=[GRANTS, TAKES_OVER, BOUNDS_ATTEMPTS],
    deadline_seconds=90,
)
async def job_kills_its_worker_every_time(lab: Lab) -> None:
    """Every worker that runs a certain job dies of it.

    What happens
        As soon as a worker has called for the job, before any effect, the worker is killed (SIGKILL); another one is
        started. This goes on until the queue gives the job up, or has granted it more often than it says it would.

    Why it matters
        A crash must count as an attempt. A queue that counts only the failures it was told of feeds this job to every
        worker it has, for ever.

    What must hold
        The job ends, at its declared maximum of attempts at the latest.
    """
    (job,) = await lab.enqueue(1)
    most = (lab.subject.max_attempts or 0) + 2
    for _ in range(most):
        victim = lab.worker(stops_at=Point.CALLING)
        await victim.start()
        if await lab.ended_before(job, victim, Point.CALLING):
            break
        await victim.kill()
    await lab.drained(within_seconds=2)
