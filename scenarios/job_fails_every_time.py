"""The outside world stays out of order."""

from harness.contracts.scenario import scenario
from harness.history.facts.outside import answered
from harness.invariants.attempts_bounded import attempts_bounded
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.operation_key_stable import operation_key_stable
from harness.lab.lab import Lab
from harness.lab.needs import BOUNDS_ATTEMPTS, GRANTS


@scenario(
    serves=["Q12", "Q13"],
    must_hold=[attempts_bounded, no_lost_job, operation_key_stable],
    must_happen=[answered("5xx")],
    needs=[GRANTS, BOUNDS_ATTEMPTS],
)
async def job_fails_every_time(lab: Lab) -> None:
    """Every call for a job fails, and the job must come to an end.

    What happens
        The sink answers every call for one job with 503. A second job, behind it, is fine.

    Why it matters
        A retry without an end is a loop that costs money; one that is counted wrongly gives up too early, or never.

    What must hold
        The job is tried as often as the subject says, then ends; the job behind it is done.
    """
    bad, _ = await lab.enqueue(2)
    lab.sink.answer_with(503, key=bad, times=None)
    await lab.worker().start()
    await lab.drained()
    await lab.stays_quiet()
