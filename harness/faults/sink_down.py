"""The outside world is not there."""

import asyncio
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target


@fault("sink down", strikes="sink", holds_seconds=3.0)
async def sink_down(target: Target) -> AsyncIterator[Landed]:
    """The service that handlers call has crashed: open calls break, new ones are refused. What it did stays done."""
    sink = target.sink
    try:
        await sink.down()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", sink.port)
        except ConnectionRefusedError:
            yield Landed(f"a connection to the sink's port {sink.port} is refused")
        else:
            writer.close()
    finally:
        await sink.up()
