"""The outside world is out of order for a moment."""

from harness.contracts.scenario import scenario
from harness.history.facts.outside import answered
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.operation_key_stable import operation_key_stable
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["Q3", "Q13"],
    must_hold=[no_lost_job, effect_once, operation_key_stable],
    must_happen=[answered("5xx"), answered("2xx")],
    needs=[GRANTS],
)
async def job_fails_by_the_system(lab: Lab) -> None:
    """A dependency is out of order once, and then works.

    What happens
        The sink answers the first call with 503, without an effect, and every later one properly.

    Why it matters
        A passing fault must cost a retry, not the job; and the retry must be recognisable as the same operation.

    What must hold
        The job is called again, with the same operation key, and is done with one effect.
    """
    await lab.enqueue(1)
    lab.sink.answer_with(503, times=1)
    await lab.worker().start()
    await lab.drained()
