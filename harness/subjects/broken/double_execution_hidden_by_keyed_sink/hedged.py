"""The reference handler, which sends again when it is not answered in time."""

import asyncio
from contextlib import asynccontextmanager

from reference_queue import sink_handler
from reference_queue.decisions import Recovery
from reference_queue.handlers import Handler

PATIENCE_SECONDS = 0.3


@asynccontextmanager
async def handlers():
    async with sink_handler.handlers() as usual:
        service = usual["default"].call.__self__

        async def call(job):
            first = asyncio.create_task(service.call(job))
            done, _ = await asyncio.wait([first], timeout=PATIENCE_SECONDS)
            if not done:
                await service.call(job)
            return await first

        yield {"default": Handler(call=call, ask=service.ask, recovery=Recovery.ASK)}
