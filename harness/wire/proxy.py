"""The proxy of one worker: a listening port that leads to PostgreSQL, and everything that can be armed on it."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.contracts.problem import EnvironmentFailed
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.wire.bucket import TokenBucket
from harness.wire.conversation import Awaited, Statement
from harness.wire.holds import Ending, NoticeHold, NoticeView, ReplyHold, RequestHold, RequestView
from harness.wire.known_jobs import KnownJobs
from harness.wire.session import Session, Side
from harness.wire.statements import StatementBook

__all__ = ["KnownJobs", "Proxy"]

CLOSE_SECONDS = 5.0
_LOOK_SECONDS = 0.002
_MOST_STATEMENTS = 4096
_LONGEST_REMEMBERED = 16_384


class Proxy:
    """Stands between one worker and PostgreSQL. ``learning`` feeds the book with what each statement was seen to do."""

    def __init__(
        self,
        worker: int,
        upstream_host: str,
        upstream_port: int,
        recorder: PlayRecorder,
        book: StatementBook,
        known: KnownJobs,
        *,
        tells_worker: bool = True,
    ) -> None:
        self.worker = worker
        self.recorder = recorder
        self.book = book
        self.known = known
        self.tells_worker = tells_worker  # adds the start-up parameter qp.worker; a pooler may refuse it
        self.learning = False
        self.port = 0
        self.sessions: list[Session] = []
        self.embryos: set[Session] = set()  # every open client socket, started or not
        self.request_holds: list[RequestHold] = []
        self.notice_holds: list[NoticeHold] = []
        self.reply_holds: list[ReplyHold] = []
        self.armed = False
        self.opened = 0
        self.hung_up_on_refusal = False
        self.is_cut = False
        self.delay_seconds = 0.0
        self.buckets: tuple[TokenBucket | None, TokenBucket | None] = (None, None)  # to the server, to the client
        self.loses_notifications = False
        self.notifications_lost = 0
        self._upstream = (upstream_host, upstream_port)
        self._server: asyncio.Server | None = None
        self._refusing: socket.socket | None = None
        self.plain: dict[bytes, Awaited] = {}  # whole Query messages that interested nobody
        self._statements: dict[bytes, Statement] = {}

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1; ``port`` says which."""
        reserved = _bind(0)
        self.port = reserved.getsockname()[1]
        await self._listen(reserved)

    async def _listen(self, reserved: socket.socket) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Session(self).client_side, sock=reserved, backlog=512
        )

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._refusing is not None:
            self._refusing.close()
            self._refusing = None
        deadline = time.monotonic() + CLOSE_SECONDS
        while True:
            self.sever_all()  # again and again: a client that had been accepted may only now get its session
            if not self.sessions and not self.embryos:
                return
            if time.monotonic() > deadline:
                left = ", ".join(map(repr, [*self.sessions, *self.embryos]))
                raise DeadlinePassed(
                    f"waited {CLOSE_SECONDS:g} s for the wire of worker {self.worker} to close: {left}"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    @property
    def tls_refused(self) -> bool:
        """Whether a client hung up because it was refused encryption, and none has ever come through without."""
        return self.hung_up_on_refusal and not self.opened

    async def connect_upstream(self, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        """Open a connection to PostgreSQL. Raises OSError."""
        host, port = self._upstream
        loop = asyncio.get_running_loop()
        if host.startswith("/"):
            await loop.create_unix_connection(protocol, f"{host}/.s.PGSQL.{port}")
        else:
            await loop.create_connection(protocol, host, port)

    def statement(self, sql: bytes) -> Statement:
        """The one object for this SQL text; texts that are huge or too many are not remembered."""
        known = self._statements.get(sql)
        if known is None:
            known = Statement(sql)
            if len(sql) <= _LONGEST_REMEMBERED:
                if len(self._statements) >= _MOST_STATEMENTS:
                    self._statements.clear()
                self._statements[sql] = known
        return known

    def remember(self, query: bytes, asked: Awaited) -> None:
        """A Query that interests nobody now; the conversation asks again each time whether that is still so."""
        if len(query) <= _LONGEST_REMEMBERED:
            if len(self.plain) >= _MOST_STATEMENTS:
                self.plain.clear()
            self.plain[query] = asked

    # ---------------------------------------------------------------- holds

    def hold_request(self, wanted: Callable[[RequestView], bool], *, every: bool = False) -> RequestHold:
        """Hold a client's message before the server sees it."""
        hold = RequestHold(wanted, self.sessions, self.holds_changed, every=every)
        self.request_holds.append(hold)
        self.holds_changed()
        return hold

    def hold_after_notice(self, wanted: Callable[[NoticeView], bool], *, every: bool = False) -> NoticeHold:
        """Hold a session whose open transaction has changed a wanted row."""
        hold = NoticeHold(wanted, self.sessions, self.holds_changed, every=every)
        self.notice_holds.append(hold)
        self.holds_changed()
        return hold

    def lose_reply(
        self, wanted: Callable[[NoticeView], bool], candidate: Callable[[RequestView], bool], *, every: bool = False
    ) -> ReplyHold:
        """Let a wanted change become durable and withhold every word of it from the client."""
        hold = ReplyHold(wanted, candidate, self.sessions, self.holds_changed, every=every)
        self.reply_holds.append(hold)
        self.holds_changed()
        return hold

    def holds_changed(self) -> None:
        """Forget holds that are over, and let each session work out what it may pass unread."""
        self.request_holds = [hold for hold in self.request_holds if hold.armed]
        self.notice_holds = [hold for hold in self.notice_holds if hold.armed]
        self.reply_holds = [hold for hold in self.reply_holds if hold.armed]
        self.armed = bool(self.request_holds or self.notice_holds or self.reply_holds)
        for session in self.sessions:
            session.refresh()

    # ---------------------------------------------------------------- faults

    def cut(self) -> None:
        """A black hole: sockets stay open, new ones are accepted, and nothing arrives on either side."""
        self.is_cut = True
        with self._links_change():
            for session in self._each():
                session.to_server.cut = session.to_client.cut = True

    def heal(self) -> None:
        """End the cut; what was held is delivered in order."""
        self.is_cut = False
        with self._links_change():
            for session in self._each():
                session.to_server.cut = session.to_client.cut = False
                session.to_server.changed()
                session.to_client.changed()

    def delay(self, milliseconds: float) -> None:
        """Make each direction this much slower; 0 ends it."""
        self.delay_seconds = milliseconds / 1000
        with self._links_change():
            for session in self._each():
                session.to_server.delay_seconds = session.to_client.delay_seconds = self.delay_seconds
                session.to_server.changed()
                session.to_client.changed()

    def throttle(self, bytes_per_second: float | None) -> None:
        """Let no more than this through in each direction, all connections together; None ends it.

        Counted is what the sockets carry, our own notices from the server included.
        """
        self.buckets = (
            (None, None) if bytes_per_second is None else (TokenBucket(bytes_per_second), TokenBucket(bytes_per_second))
        )
        with self._links_change():
            for session in self._each():
                session.to_server.bucket, session.to_client.bucket = self.buckets
                session.to_server.changed()
                session.to_client.changed()

    def _each(self) -> list[Session]:
        """Every session, those included that have not said which they are; a copy, since delivering may end some."""
        return list(dict.fromkeys((*self.sessions, *self.embryos)))

    @contextmanager
    def _links_change(self) -> Iterator[None]:
        yield
        for session in self.sessions:
            session.refresh()

    async def refuse(self) -> None:
        """New connections are refused from now on; open ones live on. The port stays ours."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._refusing is None:
            try:
                self._refusing = _bind(self.port)  # bound and not listening: the system refuses for us
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DeadlinePassed(
                        f"waited {CLOSE_SECONDS:g} s for port {self.port} of worker {self.worker} to be free: {error}"
                    ) from error
                await asyncio.sleep(_LOOK_SECONDS)

    async def accept(self) -> None:
        """End ``refuse``."""
        if self._refusing is not None:
            reserved, self._refusing = self._refusing, None
            await self._listen(reserved)

    def sever(self, session: Session | None = None, side: Side = "both", ending: Ending = "reset") -> None:
        """End a session's client side, server side, or both; without a session, those of all."""
        for each in tuple(self.sessions) if session is None else (session,):
            each.sever(side, ending)

    def sever_all(self) -> None:
        """End every socket, those included that never said which session they are."""
        for session in {*self.sessions, *self.embryos}:
            session.sever("both", "reset")


def _bind(port: int) -> socket.socket:
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", port))
    except OSError as error:
        reserved.close()
        if port:
            raise
        raise EnvironmentFailed(
            f"no free port on 127.0.0.1: {error.strerror}; end some programs and try again"
        ) from error
    reserved.setblocking(False)
    return reserved
