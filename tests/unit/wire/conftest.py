"""A proxy without sockets: what was written and what was recorded, in one order."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.wire.framing import message
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy
from harness.wire.session import Session
from harness.wire.sockets import ServerSide
from harness.wire.statements import StatementBook

BODY = b"\x00\x03\x00\x00user\0me\0application_name\0app\0\0"
STARTUP = (len(BODY) + 4).to_bytes(4, "big") + BODY
GREETING = message(b"R", b"\0\0\0\0") + message(b"K", (77).to_bytes(4, "big") + b"key!") + message(b"Z", b"I")


class Transport:
    """Writes into the log."""

    def __init__(self, name: str, log: list[tuple[str, Any]]) -> None:
        self.name, self.log = name, log
        self.ended: str | None = None
        self.reading = True

    def write(self, data: bytes) -> None:
        self.log.append((self.name, data))

    def is_closing(self) -> bool:
        return self.ended is not None

    def close(self) -> None:
        self.ended = self.ended or "close"

    def abort(self) -> None:
        self.ended = self.ended or "reset"

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_extra_info(self, _: str) -> None:
        return None


class Recorder:
    def __init__(self, log: list[tuple[str, Any]]) -> None:
        self.log = log

    def record(self, event: Any) -> None:
        self.log.append(("event", event))


class OfflineProxy(Proxy):
    """Its upstream is a transport that writes into the log."""

    async def connect_upstream(self, protocol: Callable[[], Any]) -> None:
        side = protocol()
        self.upstream = side
        side.connection_made(Transport("server", self.recorder.log))


@dataclass
class Wire:
    """One proxied connection that has been greeted."""

    log: list[tuple[str, Any]] = field(default_factory=list)
    book: StatementBook = field(default_factory=StatementBook)
    known: KnownJobs = field(default_factory=KnownJobs)

    def __post_init__(self) -> None:
        self.proxy = OfflineProxy(3, "nowhere", 0, Recorder(self.log), self.book, self.known)

    async def connect(self, startup: bytes = STARTUP, greeting: bytes = GREETING) -> None:
        self.client = Session(self.proxy).client_side
        self.client_transport = Transport("client", self.log)
        self.client.connection_made(self.client_transport)
        self.client.data_received(startup)
        for _ in range(3):
            await asyncio.sleep(0)
        self.server: ServerSide = self.proxy.upstream
        if greeting:
            self.server.data_received(greeting)

    @property
    def session(self) -> Session:
        return self.client.session

    @property
    def server_transport(self) -> Transport:
        return self.session._server

    def written(self, side: str) -> bytes:
        return b"".join(what for who, what in self.log if who == side)

    @property
    def events(self) -> list[Any]:
        return [what for who, what in self.log if who == "event"]

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def wire() -> Wire:
    return Wire()
