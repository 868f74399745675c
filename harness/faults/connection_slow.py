"""The way to the database is long."""

import asyncio
import time
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, has_victim

LATENCY_MS = 150.0


@fault("connection slow", strikes="connection", needs=[has_victim], holds_seconds=4.0)
async def connection_slow(target: Target) -> AsyncIterator[Landed]:
    """Everything between a worker and the database is late, in both directions, and in order."""
    wire = target.victim.wire
    try:
        wire.delay(LATENCY_MS)
        took_ms = await _answered_ms(wire.port)
        yield Landed(
            f"an answer through the wire of worker {target.victim.number} takes {took_ms:.0f} ms", target.victim.number
        )
    finally:
        wire.delay(0)


async def _answered_ms(port: int) -> float:
    """How long the server's "no" to a request for encryption takes: nothing else need be said."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
        async with asyncio.timeout(5):
            await reader.readexactly(1)
    finally:
        writer.close()
    return (time.monotonic() - began) * 1000
