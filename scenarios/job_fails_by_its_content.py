"""The outside world says that the job itself is wrong."""

from harness.contracts.scenario import scenario
from harness.history.facts.outside import answered
from harness.invariants.content_fails_once import content_fails_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["Q13", "Q14"],
    must_hold=[content_fails_once, no_lost_job],
    must_happen=[answered("4xx")],
    needs=[GRANTS],
)
async def job_fails_by_its_content(lab: Lab) -> None:
    """A job is wrong in itself, and says so at every attempt.

    What happens
        The sink refuses one job with 422, as an interface refuses a malformed order. Another job, behind it, is fine.

    Why it matters
        Repeating what cannot succeed hides the reason, burns the outside world's patience, and holds up the rest.

    What must hold
        The job ends without another call; the job behind it is done.
    """
    bad, _ = await lab.enqueue(2)
    lab.sink.answer_with(422, key=bad)
    await lab.worker().start()
    await lab.drained()
    await lab.stays_quiet()
