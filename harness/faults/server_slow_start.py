"""The server takes its time to come back."""

import asyncio
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.server_restarted import reachable, refused
from harness.faults.target import Target, own_server, shown

STARTING_SECONDS = 2.0
STARTING_UP = "the database system is"


def starts_slowly(target: Target) -> str | None:
    """Needs a server whose start can be held up."""
    return None if target.hurt.can_start_slowly else "the start of this server cannot be held up"


@fault(
    "server slow to start",
    strikes="server",
    needs=[own_server, starts_slowly],
    holds_seconds=2.0,
    heals_within_seconds=30.0,
)
async def server_slow_start(target: Target) -> AsyncIterator[Landed]:
    """The server accepts connections and refuses each, because it is not ready (57P03), for seconds."""
    server = target.hurt
    starting: asyncio.Task[None] | None = None
    try:
        await server.stop("immediate")
        starting = asyncio.get_running_loop().create_task(server.start_slowly(STARTING_SECONDS))

        async def told() -> str | None:
            sentence = await refused(target)
            return sentence if STARTING_UP in sentence else None

        yield Landed(await shown(told, within_seconds=8, reason="a connection to be refused by a server that starts"))
    finally:
        await (starting if starting is not None else server.start())
        await reachable(target)
