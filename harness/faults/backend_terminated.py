"""An operator, or a failover, ends a worker's connection from the server's side."""

from collections.abc import AsyncIterator, Sequence

import psycopg

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.target import Target, has_victim, shown
from harness.history.events import BackendEnded

OPEN_SECONDS = 5.0


@fault("backend terminated", strikes="connection", needs=[has_victim], holds_seconds=0)
async def backend_terminated(target: Target) -> AsyncIterator[Landed]:
    """One backend of a worker is terminated (57P01), the busiest first."""
    yield await terminated(target, [await _busiest(target)])


@fault("every backend of a worker terminated", strikes="connection", needs=[has_victim], holds_seconds=0)
async def backend_terminated_all_of_a_worker(target: Target) -> AsyncIterator[Landed]:
    """All backends of one worker are terminated at once."""
    victim = target.victim

    async def some() -> list[int]:
        return [session.pid for session in victim.sessions if session.pid]

    pids = await shown(some, within_seconds=OPEN_SECONDS, reason=f"worker {victim.number} to be connected")
    yield await terminated(target, pids)


@fault("every backend terminated", strikes="connection", needs=[has_victim], holds_seconds=0)
async def backend_terminated_all(target: Target) -> AsyncIterator[Landed]:
    """Every backend of every worker is terminated at once, as a failover does."""

    async def some() -> list[int]:
        return [session.pid for worker in target.everyone for session in worker.sessions if session.pid]

    pids = await shown(some, within_seconds=OPEN_SECONDS, reason="a worker to be connected")
    landed = await terminated(target, pids)
    yield Landed(landed.evidence)


async def terminated(target: Target, pids: Sequence[int], by: psycopg.AsyncConnection | None = None) -> Landed:
    """Terminate these backends and wait until the server does not show them any more."""
    workers = {pid: target.worker_of(pid) for pid in pids}
    if by is None:
        async with target.connected("terminator") as connection:
            await _terminate(target, pids, connection)
    else:
        await _terminate(target, pids, by)
    for pid in pids:
        target.recorder.record(BackendEnded(workers[pid], pid, "harness"))
    told = ", ".join(map(str, pids))
    return Landed(f"backend {told} is gone from pg_stat_activity", workers[pids[0]])


async def _terminate(target: Target, pids: Sequence[int], connection: psycopg.AsyncConnection) -> None:
    try:
        await connection.execute("select pg_terminate_backend(pid) from unnest(%s::int[]) as pid", (list(pids),))
    except psycopg.errors.InsufficientPrivilege as error:
        raise Inapplicable(f"the role {target.owner.user} may not end a worker's session") from error

    async def gone() -> bool:
        cursor = await connection.execute(
            "select count(*) = 0 from pg_stat_activity where pid = any(%s)", (list(pids),)
        )
        row = await cursor.fetchone()
        return bool(row and row[0])

    await shown(gone, within_seconds=5, reason="the backends to be gone from pg_stat_activity")


async def _busiest(target: Target) -> int:
    async with target.connected("terminator") as connection:

        async def look() -> int:
            pids = [session.pid for session in target.victim.sessions if session.pid]
            cursor = await connection.execute(
                "select pid from pg_stat_activity where pid = any(%s) order by state = 'idle', query_start desc limit 1",
                (pids,),
            )
            row = await cursor.fetchone()
            return int(row[0]) if row else 0

        return await shown(look, within_seconds=OPEN_SECONDS, reason=f"worker {target.victim.number} to be connected")
