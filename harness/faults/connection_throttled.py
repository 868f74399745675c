"""The way to the database is narrow."""

import asyncio
import time
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.contracts.problem import EnvironmentFailed
from harness.faults.target import Target, has_victim
from harness.wire.bucket import TokenBucket

BYTES_PER_SECOND = 4_096.0
ASKED = 400
ASK_SECONDS = 8.0
ENCRYPTION_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


@fault("connection throttled", strikes="connection", needs=[has_victim], holds_seconds=4.0)
async def connection_throttled(target: Target) -> AsyncIterator[Landed]:
    """The bandwidth between a worker and the database is 32 kbit/s each way, for all its connections together."""
    wire = target.victim.wire
    sent = ASKED * len(ENCRYPTION_REQUEST)
    least_seconds = (sent - TokenBucket(BYTES_PER_SECOND).burst_bytes) / BYTES_PER_SECOND
    try:
        wire.throttle(BYTES_PER_SECOND)
        took = await _sent_seconds(wire.port)
        if took < least_seconds:
            raise EnvironmentFailed(
                f"{sent} bytes took {took:.3f} s through a line that needs {least_seconds:.3f} s for them: it is not narrow"
            )
        yield Landed(
            f"{sent} bytes through the wire of worker {target.victim.number}, which carries"
            f" {BYTES_PER_SECOND:.0f} a second, took {took * 1000:.0f} ms",
            target.victim.number,
        )
    finally:
        wire.throttle(None)


async def _sent_seconds(port: int) -> float:
    """How long many requests for encryption take until the last is answered "no": no session begins with them."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(ENCRYPTION_REQUEST * ASKED)
        async with asyncio.timeout(ASK_SECONDS):
            await reader.readexactly(ASKED)
    finally:
        writer.close()
    return time.monotonic() - began
