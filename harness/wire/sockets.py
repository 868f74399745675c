"""The two sockets of a session. A side that is ``direct`` passes whole chunks; what they say is noted before they go on."""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from harness.wire.framing import end_of
from harness.wire.holds import Ending

if TYPE_CHECKING:
    from harness.wire.session import Session


class ClientSide(asyncio.Protocol):
    """The worker's socket."""

    def __init__(self, session: "Session") -> None:
        self.direct = False
        self.session = session
        self._feed = session.front.feed
        self._sent = session.talk.sent
        self._sent_plainly = session.talk.sent_plainly

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.session.client_connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        if not self.direct:
            self.session.to_server.put(data)
            return
        if not self._sent_plainly(data):
            data, marks = self._feed(data)
            for at in marks:
                self._sent(data, at)
        if data:
            self.session.write_server(data)

    def eof_received(self) -> None:
        self.session.client_lost()

    def connection_lost(self, _: Exception | None) -> None:
        self.session.client_lost(gone=True)

    def pause_writing(self) -> None:
        self.session.client_full(full=True)

    def resume_writing(self) -> None:
        self.session.client_full(full=False)


class ServerSide(asyncio.Protocol):
    """Our socket to PostgreSQL on the worker's behalf."""

    def __init__(self, session: "Session") -> None:
        self.direct = False
        self.session = session
        self._feed = session.back.feed
        self._answered = session.talk.answered
        self._answered_plainly = session.talk.answered_plainly

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.session.server_connected(self, cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        session = self.session
        if not self.direct:
            session.to_client.put(data)
            return
        data, marks = self._feed(data)
        if marks and not self._answered_plainly(data, marks):
            ours = [at for at in marks if self._answered(data, at)]
            if ours:
                data = _without(data, ours)
        if data:
            session.write_client(data)

    def eof_received(self) -> None:
        self.session.server_lost()

    def connection_lost(self, _: Exception | None) -> None:
        self.session.server_lost(gone=True)

    def pause_writing(self) -> None:
        self.session.server_full(full=True)

    def resume_writing(self) -> None:
        self.session.server_full(full=False)


def _without(data: bytes, messages: Sequence[int]) -> bytes:
    """The chunk without the whole messages that begin at these offsets."""
    kept, at = [], 0
    for start in messages:
        kept.append(data[at:start])
        at = end_of(data, start)
    kept.append(data[at:])
    return b"".join(kept)


def end(transport: asyncio.Transport | None, ending: Ending) -> None:
    """End a connection: "close" delivers what is buffered and says goodbye, "reset" does neither."""
    if transport is None:
        return
    if ending == "close":
        transport.close()
        return
    connection = transport.get_extra_info("socket")
    if connection is not None and not transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
