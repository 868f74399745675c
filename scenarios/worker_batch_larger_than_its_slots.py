"""More jobs than slots, and handlers that together take longer than a lease."""

from harness.contracts.scenario import scenario
from harness.history.facts.outcomes import more_jobs_than_slots
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, LEASE

JOBS = 6


@scenario(
    serves=["Q8", "Q10", "V2"],
    must_hold=[one_owner, no_double_execution, effect_once, no_lost_job],
    must_happen=[more_jobs_than_slots(2)],
    needs=[GRANTS, LEASE],
)
async def worker_batch_larger_than_its_slots(lab: Lab) -> None:
    """Six jobs for two workers of one slot each, and together they take longer than a lease.

    What happens
        Each call takes almost half a lease. A worker that claims a batch runs the first job while the others wait in its
        buffer, longer than the lease they were granted with.

    Why it matters
        A lease starts at the claim, the handler starts later. What waits in a buffer must be renewed, given back, or
        checked again before it starts; else another worker runs it too.

    What must hold
        No job has two owners, none is executed twice, all end.
    """
    await lab.enqueue(JOBS)
    lab.sink.service_seconds = (lab.subject.lease_seconds or 2.0) * 0.45
    await lab.worker().start()
    await lab.worker().start()
    await lab.drained(within_seconds=lab.takeover_seconds + JOBS * lab.sink.service_seconds)
