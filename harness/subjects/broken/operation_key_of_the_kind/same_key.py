"""The reference handler, with one key for all jobs of a kind."""

from contextlib import asynccontextmanager

from reference_queue import sink_handler
from reference_queue.decisions import Recovery
from reference_queue.handlers import Handler


class OneKey:
    def __init__(self, session, key):
        self._session, self._key = session, key

    def post(self, url, headers, **more):
        return self._session.post(url, headers={**headers, "Idempotency-Key": self._key}, **more)


@asynccontextmanager
async def handlers():
    async with sink_handler.handlers() as usual:
        service = usual["default"].call.__self__

        async def call(job):
            return await sink_handler.Service(OneKey(service._session, job.grant.kind), service._address).call(job)

        yield {"default": Handler(call=call, recovery=Recovery.REPLAY)}
