"""The completion is durable, its reply never arrives."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.points import reply_lost
from harness.invariants.effect_once import effect_once
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, WRITES_RESULTS


@scenario(
    serves=["V4", "V9", "Q9", "Q19"],
    must_hold=[effect_once, no_double_execution, finished_stays_finished, no_lost_job],
    must_happen=[reply_lost("result")],
    needs=[GRANTS, WRITES_RESULTS],
)
async def connection_confirmation_reply_lost(lab: Lab) -> None:
    """The connection breaks after a job's completion became durable and before the worker was told.

    What happens
        The server has committed the result; every byte of its reply is withheld, then the connection is broken. A second
        worker runs beside the first.

    Why it matters
        Read as a failure, the unknown commit makes a finished job run again.

    What must hold
        The job stays finished and is not executed again.
    """
    await lab.enqueue(1)
    victim = lab.worker(stops_at=Point.RESULT_LOST)
    await victim.start()
    await victim.reached(Point.RESULT_LOST)
    await victim.lose_reply(Point.RESULT_LOST)
    await lab.worker().start()
    await lab.drained()
    await lab.stays_quiet()
