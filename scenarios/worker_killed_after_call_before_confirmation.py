"""Killed with its effect applied and its confirmation not written."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import killed_at
from harness.history.facts.takeovers import taken_over
from harness.invariants.asks_before_repeating import asks_before_repeating
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.operation_key_stable import operation_key_stable
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V4", "V9", "Q3", "Q11", "Q12"],
    must_hold=[effect_once, no_double_execution, operation_key_stable, asks_before_repeating, no_lost_job],
    must_happen=[killed_at(Point.CALLED), taken_over],
    needs=[GRANTS, TAKES_OVER],
    record="reclaim",
)
async def worker_killed_after_call_before_confirmation(lab: Lab) -> None:
    """A worker dies after its external call took effect and before it could write that down.

    What happens
        The sink has applied the effect and holds the reply; the worker is killed. Another worker starts and takes over.

    Why it matters
        This is where money is paid twice. Whoever takes over cannot know from the table whether the call happened: it must
        ask the outside world, or repeat the call with the same operation key.

    What must hold
        One effect. The operation key is the same for every attempt; a queue that promises to ask, asks first.
    """
    (job,) = await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.CALLED)
    await victim.start()
    await victim.reached(Point.CALLED, job)
    await victim.kill()
    await lab.worker().start()
    await lab.taken_over(job, from_worker=victim)
    await lab.drained()
