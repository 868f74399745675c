"""Two producers add one job at the same time, and one of them thinks better of it."""

from harness.contracts.scenario import scenario
from harness.history.facts.said import saw
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.crossing import ROLLED_BACK, enqueue_beside_a_rolled_back_one
from harness.lab.lab import Lab
from harness.lab.needs import ENQUEUES_BY_SQL, GRANTS

KEY = "job-of-two-producers"


@scenario(
    serves=["V2", "Q1", "Q6"],
    must_hold=[no_lost_job, effect_once],
    must_happen=[saw(ROLLED_BACK)],
    needs=[GRANTS, ENQUEUES_BY_SQL],
)
async def job_enqueued_beside_an_insert_that_is_rolled_back(lab: Lab) -> None:
    """A job is enqueued while another producer's insert of the same job is not committed, and then is rolled back.

    What happens
        A producer adds a job and keeps its transaction open. A second producer adds a job of the same key: it is answered, or
        waits for the first. The first rolls back; then a worker starts.

    Why it matters
        Requests are sent twice, and a business transaction that has enqueued something may still fail. A queue that
        recognises duplicates must not take an insert for one that nobody has committed: the second producer would be told
        that all is well, and nobody would have added the job.

    What must hold
        What the second producer was told is true: a job that was acknowledged is there, and ends, once.
    """
    await enqueue_beside_a_rolled_back_one(lab, KEY)
    await lab.worker().start()
    await lab.drained()
