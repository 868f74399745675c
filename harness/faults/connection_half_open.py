"""One side of a connection is gone, and the other does not know it."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.target import Target, has_victim, shown
from harness.history.recorder import DeadlinePassed
from harness.wire.session import Session

LISTEN_SECONDS = 3.0


@fault("connection half-open", strikes="connection", needs=[has_victim], holds_seconds=3.0, holds_leases=1.5)
async def connection_half_open(target: Target) -> AsyncIterator[Landed]:
    """The server has ended a worker's sessions, and the worker's sockets stay open: a failover behind a load balancer.

    What the worker sends is answered by nobody. Healed by a reset, as when the balancer forgets them.
    """
    victim = target.victim

    async def some() -> list[int]:
        return [session.pid for session in victim.sessions if session.open]

    pids = await shown(some, within_seconds=5, reason=f"worker {victim.number} to be connected")
    sessions = [session for session in victim.sessions if session.open]
    try:
        for session in sessions:
            session.sever("server", "close")
        await _gone(target, pids)
        told = ", ".join(map(str, pids))
        yield Landed(f"backend {told} is gone, the worker's {len(sessions)} sockets are open", victim.number)
    finally:
        for session in sessions:
            session.sever("client", "reset")


@fault("listening connection half-open", strikes="connection", needs=[has_victim], holds_seconds=4.0)
async def connection_half_open_of_listener(target: Target) -> AsyncIterator[Landed]:
    """Only the session that listens is gone for the server, and its socket stays open: silence that looks like calm."""

    async def look() -> list[Session]:
        sessions = [session for worker in target.everyone for session in worker.sessions]
        return [session for session in sessions if session.open and session.talk.listens]

    try:
        listeners = await shown(look, within_seconds=LISTEN_SECONDS, reason="a session to listen")
    except DeadlinePassed as error:
        raise Inapplicable("no session of its workers listens for notifications") from error
    try:
        for session in listeners:
            session.sever("server", "close")
        await _gone(target, [session.pid for session in listeners])
        told = ", ".join(str(session.pid) for session in listeners)
        yield Landed(f"listening backend {told} is gone, the sockets to it are open")
    finally:
        for session in listeners:
            session.sever("client", "reset")


@fault("connection orphaned", strikes="connection", needs=[has_victim], holds_seconds=2.0)
async def connection_half_open_client_gone(target: Target) -> AsyncIterator[Landed]:
    """A worker's sockets are reset and the server is not told: a statement that is in flight goes on and may commit."""
    victim = target.victim

    async def some() -> list[int]:
        return [session.pid for session in victim.sessions if session.open]

    pids = await shown(some, within_seconds=5, reason=f"worker {victim.number} to be connected")
    sessions = [session for session in victim.sessions if session.open]
    try:
        for session in sessions:
            session.sever("client", "reset")
        async with target.connected("look") as connection:
            cursor = await connection.execute("select pid, state from pg_stat_activity where pid = any(%s)", (pids,))
            alive = await cursor.fetchall()
        if not alive:
            raise Inapplicable("its backends ended by themselves before they could be orphaned")
        told = ", ".join(f"{pid} ({state})" for pid, state in alive)
        yield Landed(f"the worker's sockets are reset, its backends live on: {told}", victim.number)
    finally:
        for session in sessions:
            session.sever("server", "reset")


async def _gone(target: Target, pids: list[int]) -> None:
    async with target.connected("look") as connection:

        async def look() -> bool:
            cursor = await connection.execute(
                "select count(*) = 0 from pg_stat_activity where pid = any(%s) and state like 'idle%%'", (pids,)
            )
            row = await cursor.fetchone()
            return bool(row and row[0])

        await shown(look, within_seconds=5, reason="the severed backends to be gone")
