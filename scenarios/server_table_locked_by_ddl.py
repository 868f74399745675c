"""A table lock, which SKIP LOCKED does not skip."""

from harness.contracts.scenario import scenario
from harness.history.facts.locks import blocked_on
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V6"],
    must_hold=[no_lost_job, effect_once],
    must_happen=[blocked_on("table")],
    needs=[GRANTS],
)
async def server_table_locked_by_ddl(lab: Lab) -> None:
    """A migration holds the whole table for a moment: everything waits, and that is reported apart.

    What happens
        A session of the harness takes the lock that ALTER TABLE takes. A worker starts, and its claim is seen waiting for
        the relation. Then the lock is given back.

    Why it matters
        SKIP LOCKED skips rows, not tables. Teams that expect otherwise plan their migrations wrongly; set lock_timeout.

    What must hold
        Waiting here is no fault. Nothing is lost, and nothing runs twice, once the lock is gone.
    """
    await lab.enqueue(2)
    worker = lab.worker()
    async with lab.table_locked():
        await worker.start()
        await lab.blocked_on_table(worker)
    await lab.drained()
