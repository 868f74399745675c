"""A handler that calls an HTTP service once per job, with the operation key, and can ask it about that key afterwards.

It is what the gate runs, and a pattern for handlers of your own. ``QUEUEPROOF_SINK`` is the service's address.
"""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import aiohttp
from yarl import URL

from reference_queue.decisions import Answer, Recovery
from reference_queue.failures import Refused, from_status
from reference_queue.handlers import Done, Handler, Handlers, Job
from reference_queue.settings import BadSetting, seconds

_HEADER_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@asynccontextmanager
async def handlers() -> AsyncIterator[Handlers]:
    """The one kind of job, ``default``, against the service that the environment names."""
    address = os.environ.get("QUEUEPROOF_SINK", "").rstrip("/")
    if not address:
        raise BadSetting("QUEUEPROOF_SINK is not set: the handler does not know whom to call")
    timeout = aiohttp.ClientTimeout(total=seconds(os.environ.get("QUEUE_CALL_TIMEOUT", "60s")))
    # A connection of its own for each call: a kept-alive one may be dead already, and the library would send again.
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        service = Service(session, address)
        yield {"default": Handler(call=service.call, ask=service.ask, recovery=Recovery.ASK)}


class Service:
    """The outside world, at one address."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def call(self, job: Job) -> Done:
        """One call. The key is the same for every attempt; the token lets the service refuse an older holder."""
        key = job.grant.operation_key
        headers = {"Idempotency-Key": header_value(key), "Fencing-Token": str(job.grant.version)}
        async with self._session.post(self._url(key), headers=headers, allow_redirects=False) as response:
            await response.read()
            if not 200 <= response.status < 300:
                raise Refused(from_status(response.status, response.headers.get("X-Request-Id")))
            return Done(response.headers.get("X-Resource-Id"))

    async def ask(self, job: Job) -> Answer:
        """Whether the effect exists. Absent may also mean that a call is still on its way, so a repeat uses the same key."""
        async with self._session.get(self._url(job.grant.operation_key), allow_redirects=False) as response:
            await response.read()
            if response.status == 200:
                return Answer.APPLIED
            if response.status == 404:
                return Answer.ABSENT
            if response.status in {202, 409, 425}:
                return Answer.UNDECIDED
            return Answer.UNREACHABLE

    def _url(self, key: str) -> URL:
        return URL(f"{self._address}/{quote(key, safe='')}", encoded=True)


def header_value(key: str) -> str:
    """The key as it is, or percent-encoded when a header could not carry it."""
    return key if _HEADER_SAFE.fullmatch(key) else quote(key, safe="")
