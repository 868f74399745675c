"""The reference handler, without a way to ask."""

from contextlib import asynccontextmanager

from reference_queue import sink_handler
from reference_queue.decisions import Recovery
from reference_queue.handlers import Handler


@asynccontextmanager
async def handlers():
    async with sink_handler.handlers() as usual:
        yield {"default": Handler(call=usual["default"].call, recovery=Recovery.REPLAY)}
