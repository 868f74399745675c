"""The reference handler, with a key that has the attempt in it."""

import dataclasses
from contextlib import asynccontextmanager

from reference_queue.decisions import Recovery
from reference_queue.handlers import Handler
from reference_queue.sink_handler import Service, header_value
from reference_queue import sink_handler


@asynccontextmanager
async def handlers():
    async with sink_handler.handlers() as usual:
        service = usual["default"].call.__self__

        async def call(job):
            key = job.grant.operation_key
            return await KeyPerAttempt(service._session, service._address, f"{key}#{job.grant.attempts}").call(job)

        yield {"default": Handler(call=call, recovery=Recovery.REPLAY)}


class KeyPerAttempt(Service):
    def __init__(self, session, address, key):
        super().__init__(_Session(session, header_value(key)), address)


class _Session:
    def __init__(self, session, key):
        self._session, self._key = session, key

    def post(self, url, headers, **more):
        return self._session.post(url, headers={**headers, "Idempotency-Key": self._key}, **more)
