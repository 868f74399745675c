"""A long transaction holds one job's row."""

from harness.contracts.scenario import scenario
from harness.history.facts.locks import skipped_locked_row
from harness.invariants.claims_not_blocked import claims_not_blocked
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS

JOBS = 4


@scenario(
    serves=["V6", "Q15"],
    must_hold=[claims_not_blocked, no_lost_job],
    must_happen=[skipped_locked_row],
    needs=[GRANTS],
    record="skip",
)
async def server_row_locked_for_long(lab: Lab) -> None:
    """Somebody's long transaction holds the first job's row; the others must not wait for it.

    What happens
        A session of the harness locks the first job's row and keeps it. Two workers start, and every other job is ended.
        Then the session rolls back and the first job is ended as well.

    Why it matters
        A report, a migration, a person in psql: someone always holds a row. A claim that waits for it stops the queue.

    What must hold
        No claim waits behind the held row; nothing is lost once it is free.
    """
    keys = await lab.enqueue(JOBS)
    async with lab.row_held(keys[0]):
        await lab.worker().start()
        await lab.worker().start()
        await lab.drained(keys[1:])
    await lab.drained()
