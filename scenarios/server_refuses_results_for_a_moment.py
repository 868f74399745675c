"""A deadlock where a result is written."""

from harness.contracts.scenario import scenario
from harness.faults.raised import raised_deadlock
from harness.history.facts.said import fault_landed
from harness.invariants.effect_once import effect_once
from harness.invariants.failures_are_real import failures_are_real
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, WRITES_RESULTS


@scenario(
    serves=["V8", "Q9", "Q19"],
    must_hold=[failures_are_real, finished_stays_finished, effect_once, no_lost_job],
    must_happen=[fault_landed("40P01 raised")],
    needs=[GRANTS, WRITES_RESULTS],
)
async def server_refuses_results_for_a_moment(lab: Lab) -> None:
    """The server refuses two completions with a deadlock (40P01), then works again.

    What happens
        Two workers run four jobs. Two of their completions are refused with 40P01, by a trigger of ours, although
        the calls were answered with 200.

    Why it matters
        A refused statement is the database's affair, not the job's. A worker that takes it for the job's failure
        spoils a job that was done; one that dies of it is missing afterwards.

    What must hold
        Every job ends as done, with one effect; none is written down as failed.
    """
    lab.sink.service_seconds = 0.3
    await lab.enqueue(4)
    await lab.worker().start()
    await lab.worker().start()
    await lab.begin(raised_deadlock)
    await lab.drained()
