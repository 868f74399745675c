"""The whole server goes away and comes back."""

import asyncio
from collections.abc import AsyncIterator

import psycopg

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, own_server, shown
from harness.postgres.server import StopMode

BACK_SECONDS = 20.0


@fault("server restarted", strikes="server", needs=[own_server], holds_seconds=1.0)
async def server_restarted_fast(target: Target) -> AsyncIterator[Landed]:
    """A fast shutdown, as before a minor upgrade: transactions are rolled back; up again when healed."""
    async for landed in _down(target, "fast"):
        yield landed


@fault("server stopped at once", strikes="server", needs=[own_server], holds_seconds=1.0)
async def server_restarted_immediate(target: Target) -> AsyncIterator[Landed]:
    """An immediate shutdown: no checkpoint, no goodbye; recovery from the log when healed."""
    async for landed in _down(target, "immediate"):
        yield landed


async def _down(target: Target, mode: StopMode) -> AsyncIterator[Landed]:
    server = target.hurt
    try:
        await server.stop(mode)
        yield Landed(await refused(target))
    finally:
        await server.start()
        await reachable(target)


async def refused(target: Target) -> str:
    """The sentence with which a new connection is refused."""
    try:
        async with target.connected("look"):
            pass
    except psycopg.OperationalError as error:
        return f"a new connection is refused: {str(error).strip().splitlines()[-1].strip()}"
    return ""


async def reachable(target: Target) -> None:
    """Wait until a new connection to the play's own database is answered."""

    async def answered() -> bool:
        try:
            async with asyncio.timeout(2), target.connected("look") as connection:
                await connection.execute("select 1")
        except (psycopg.OperationalError, TimeoutError):
            return False
        return True

    await shown(answered, within_seconds=BACK_SECONDS, reason="the server to be reachable again")
