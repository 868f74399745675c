"""Somebody locks two jobs in turn, while a worker writes the results of both."""

from harness.contracts.scenario import scenario
from harness.history.facts.said import saw
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.crossing import CROSSED, lock_across_results
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, WRITES_RESULTS


@scenario(
    serves=["V2", "Q11", "Q15"],
    must_hold=[no_lost_job, effect_once],
    must_happen=[saw(CROSSED)],
    needs=[GRANTS, WRITES_RESULTS],
)
async def server_rows_locked_one_after_the_other(lab: Lab) -> None:
    """A transaction locks one job's row and then the next one's, in the order of their ids, while a worker writes both results.

    What happens
        A worker with two slots has called for both jobs. A session of the harness locks the first one's row; the calls are
        answered, and a result waits for that row. Then the session locks the second row, and rolls back once it has it. If
        the worker had locked the second row before the first, each waits for the other, and the server ends the worker's
        statement as a deadlock.

    Why it matters
        Cancelling, requeueing and heartbeats lock several rows, in some order. Whoever writes several results at once in
        another order meets them in a deadlock sooner or later, and has then written nothing.

    What must hold
        Both jobs end in their time, and a result that was not written is not forgotten.
    """
    keys = await lab.enqueue(2)
    worker = lab.worker(slots=2)
    await lock_across_results(lab, worker, keys)
    await lab.drained()
