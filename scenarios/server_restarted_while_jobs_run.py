"""A fast restart of the server in the middle of everything."""

from harness.contracts.scenario import scenario
from harness.faults.server_restarted import server_restarted_fast
from harness.history.facts.said import server_was_hurt
from harness.invariants.backlog_recovers import backlog_recovers
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.inflow import Inflow
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER

JOBS_PER_SECOND = 6
CALM_SECONDS = 0.5
WARM_SECONDS = 60.0  # on a busy machine programs start slowly, and that is not what is judged


@scenario(
    serves=["V10", "Q4", "Q11"],
    must_hold=[backlog_recovers, no_lost_job, effect_once, no_stale_write],
    must_happen=[server_was_hurt],
    needs=[GRANTS, TAKES_OVER],
    hurts="server",
    deadline_seconds=150,
)
async def server_restarted_while_jobs_run(lab: Lab) -> None:
    """The server is shut down (fast) while two workers work, and comes back.

    What happens
        Jobs keep coming, two workers keep up with them. The server goes down in the middle, refuses for a moment, and is there
        again on the same port; what has piled up has to go while more jobs come.

    Why it matters
        Every minor upgrade does this. A worker that does not reconnect, or takes a broken answer for a result, shows here.

    What must hold
        Nothing is lost and no effect is doubled; the workers go on without anybody's help.
    """
    lab.sink.service_seconds = 0.1
    workers = [await lab.worker().start() for _ in range(2)]
    for worker in workers:  # so that nothing piles up while they start
        await lab.has_looked(worker, within_seconds=WARM_SECONDS)
    inflow = Inflow(lab, JOBS_PER_SECOND)
    async with inflow.flowing():
        await lab.eventually(
            lambda: inflow.ended >= JOBS_PER_SECOND and inflow.backlog <= len(workers),
            within_seconds=WARM_SECONDS,
            reason="the workers to keep up with the jobs that come",
        )
        await inflow.settle_in(CALM_SECONDS)
        async with lab.injured(server_restarted_fast):
            pass
        await lab.reconnect()
        await inflow.recovered(lab.takeover_seconds)
    await lab.drained(inflow.acknowledged, within_seconds=lab.takeover_seconds)
