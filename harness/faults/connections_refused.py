"""Nobody listens where the database was."""

import asyncio
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, has_victim


@fault("connections refused", strikes="connection", needs=[has_victim])
async def connections_refused(target: Target) -> AsyncIterator[Landed]:
    """A worker's connections break, and new ones are refused: a firewall, a service without endpoints."""
    wire = target.victim.wire
    try:
        await wire.refuse()
        wire.sever()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", wire.port)
        except ConnectionRefusedError:
            yield Landed(f"a connection to port {wire.port} is refused", target.victim.number)
        else:
            writer.close()
    finally:
        await wire.accept()
