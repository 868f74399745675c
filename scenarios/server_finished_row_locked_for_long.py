"""A long transaction holds the row of a job that is finished."""

import contextlib

from harness.contracts.scenario import scenario
from harness.history.events import Blocked
from harness.history.facts.said import fault_landed
from harness.history.recorder import DeadlinePassed
from harness.invariants.claims_not_blocked import claims_not_blocked
from harness.invariants.free_jobs_are_given_out import free_jobs_are_given_out
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, KEEPS_FINISHED

RETENTION_SECONDS = 4.0
OTHERS_SECONDS = 1.0


@scenario(
    serves=["V6", "Q15", "Q16"],
    must_hold=[free_jobs_are_given_out, claims_not_blocked, no_lost_job],
    must_happen=[fault_landed("row held")],
    needs=[GRANTS, KEEPS_FINISHED],
)
async def server_finished_row_locked_for_long(lab: Lab) -> None:
    """Somebody's long transaction holds the row of a finished job; a job that is due must not wait for it.

    What happens
        A job is worked off. A session of the harness locks its row and keeps it, long enough for a retention that is part of
        the queue to come upon it. Then another job is enqueued, with two workers idle. When it has been given to one of them,
        the session rolls back.

    Why it matters
        Reports, backups and people look at what is finished. A retention that is one delete of everything waits for the one
        row, or takes as long as there are rows, and where it is part of the workers' round, so do all claims.

    What must hold
        The new job is given out in its time, whatever becomes of the finished one's row.
    """
    (finished,) = await lab.enqueue(1)
    for _ in range(2):
        await lab.worker().start()
    await lab.drained()
    async with lab.row_held(finished):
        since = lab.recorder.entries[-1].n
        with contextlib.suppress(DeadlinePassed):  # most have no retention, or one that passes over the row
            await lab.until(
                lambda event: isinstance(event, Blocked),
                within_seconds=RETENTION_SECONDS,
                reason="somebody to wait behind the finished row",
                since=since,
            )
            # A worker that is between two of its rounds would still be given the job.
            await lab.watch_for(OTHERS_SECONDS, "whether the others come upon the row, too")
        (due,) = await lab.enqueue(1)
        await lab.granted(due)
    await lab.drained()
