"""One connection of a worker: its two sockets, what it runs, what it is told, and where it is made to stand still.

Bytes pass unread where nobody is interested; ``direct`` on a side means that nothing is armed and whole chunks go on.
Everything that a chunk says is recorded before any byte of it is passed on: the order of events is the product's proof.
"""

import asyncio
import itertools
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from harness.history.events import Attempted, Noticed, SessionClosed, SessionOpened, Settled
from harness.wire import framing
from harness.wire.framing import IDLE, IN_TRANSACTION, Scanner, end_of, word_at
from harness.wire.holds import Ending, Hold, NoticeHold, NoticeView, ReplyHold, RequestView
from harness.wire.known_jobs import NOTHING, Found, KnownJobs
from harness.wire.link import Link
from harness.wire.statements import StatementBook, fingerprint

if TYPE_CHECKING:
    from harness.wire.proxy import Proxy

Side = Literal["client", "server", "both"]

_MOST_PORTALS = 4096
_numbers = itertools.count(1)

# Frontend messages.
_QUERY, _PARSE, _BIND, _EXECUTE, _SYNC, _FLUSH = b"QPBESH"
_CLOSE, _FUNCTION, _TERMINATE, _COPY_DONE, _COPY_FAIL = b"CFXcf"
# Backend messages.
_READY, _COMPLETE, _ERROR, _EMPTY, _SUSPENDED, _NOTICE, _KEY, _COPY_IN, _COPY_BOTH = b"ZCEIsNKGW"


class Statement:
    """One SQL text. Its fingerprint is worked out when first asked for: most runs of most statements never ask."""

    __slots__ = ("_changes", "_fingerprint", "_found", "_found_version", "_text", "_version", "plain", "sql_bytes")

    def __init__(self, sql: bytes) -> None:
        self.sql_bytes = sql
        self._text: str | None = None
        self._fingerprint: str | None = None
        self._changes: tuple[str, ...] = ()
        self._version = -1
        self._found = NOTHING
        self._found_version = -1
        self.plain = Running(self)

    @property
    def sql(self) -> str:
        if self._text is None:
            self._text = self.sql_bytes.decode("utf-8", "replace")
        return self._text

    @property
    def fingerprint(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.sql)
        return self._fingerprint

    def changes(self, book: StatementBook) -> tuple[str, ...]:
        if self._version != book.version:
            self._changes = () if book.empty else book.changes(self.fingerprint)
            self._version = book.version
        return self._changes

    def literals(self, known: KnownJobs) -> Found:
        if self._found_version != known.version:
            self._found = known.in_text(self.sql)
            self._found_version = known.version
        return self._found


class Running:
    """A statement with what its parameters name, on its way through the server."""

    __slots__ = ("found", "statement")

    def __init__(self, statement: Statement, found: Found = NOTHING) -> None:
        self.statement = statement
        self.found = found


# What the server still has to answer, in order: a Query (ends with ReadyForQuery), an Execute, a Sync. A COPY_END stands
# for a CopyDone or CopyFail that was sent before the server asked for data.
_Awaited = tuple[str, Running]
_UNKNOWN = Running(Statement(b""))
_CALL = Running(Statement(b"function call"))
_SYNCED: _Awaited = ("sync", _UNKNOWN)
_COPY_END: _Awaited = ("copy end", _UNKNOWN)


class ClientSide(asyncio.Protocol):
    """The worker's socket."""

    def __init__(self, proxy: "Proxy") -> None:
        self.direct = False
        self.session = Session(proxy, self)
        self._feed = self.session.front.feed
        self._sent = self.session.sent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.session.client_connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        if not self.direct:
            self.session.to_server.put(data)
            return
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
        self._answered = session.answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.session.server_connected(self, cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        session = self.session
        if not self.direct:
            session.to_client.put(data)
            return
        data, marks = self._feed(data)
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


def _end(transport: asyncio.Transport | None, ending: Ending) -> None:
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


class Session:
    """A worker's connection. ``status`` is what the last ReadyForQuery said: I, T or E; "" before the first."""

    def __init__(self, proxy: "Proxy", client: ClientSide) -> None:
        self._proxy = proxy
        self.id = 0  # given with the start-up packet
        self.worker = proxy.worker
        self.pid = 0
        self.app = ""
        self.opened = False
        self.closed_by: str | None = None
        self.declined = False  # encryption was asked for and declined, nothing came since
        self.front = Scanner(framing.FRONT)
        self.back = Scanner(framing.BACK)
        self.to_server = Link(self._client_bytes, self.refresh, cut=proxy.is_cut, delay_seconds=proxy.delay_seconds)
        self.to_client = Link(self._server_bytes, self.refresh, cut=proxy.is_cut, delay_seconds=proxy.delay_seconds)
        self._client_side = client
        self._server_side: ServerSide | None = None
        self._client: asyncio.Transport | None = None
        self._server: asyncio.Transport | None = None
        self._client_gone = False
        self._server_gone = False
        self._startup = b""
        self._started = False
        self._connecting: asyncio.Task[None] | None = None
        self._terminated = False
        self._ready = 0
        # What runs.
        self._statements: dict[bytes, Statement] = {}
        self._portals: dict[bytes, Running] = {}
        self._awaited: deque[_Awaited] = deque()
        self._skipping = False  # the server ignores everything until a Sync
        self._copying_in = False
        self._moved = 0  # notices within the statement that runs
        self._tags: list[str] = []  # of the Query that runs
        self._sqlstate: str | None = None
        self._last = _UNKNOWN
        self._unsettled = False
        # Of the transaction and of the cycle up to the next ReadyForQuery.
        self._last_tag = b""
        self._failed = False
        self._wanted: dict[ReplyHold, NoticeView] = {}
        self._durable: dict[ReplyHold, NoticeView] = {}
        # Where it stands still.
        self._gate: Hold | None = None
        self._struck = False  # the gate's hold is hit, not only prepared
        self._noticed: NoticeView | None = None
        self._undecided = False  # a Parse waits for the Bind that decides
        self._pardoned: Hold | None = None
        self._queue: list[tuple[bytes, bool]] = []
        self._withheld: list[bytes] | None = None
        self._lost_by: ReplyHold | None = None
        self._server_end_waits = False

    def __repr__(self) -> str:
        return f"<Session {self.id} of worker {self.worker}, backend {self.pid}, {self.status or 'starting'}>"

    @property
    def status(self) -> str:
        return chr(self._ready) if self._ready else ""

    @property
    def open(self) -> bool:
        """Whether it is ready and neither side has ended."""
        return self.opened and self.closed_by is None

    @property
    def running(self) -> str:
        """The text of the statement that the server is busy with, or ""."""
        head = self._head()
        return head[1].statement.sql if head else ""

    @property
    def has_held(self) -> bool:
        """Whether anything that the client sent is held back right now."""
        return bool(self._queue)

    # ---------------------------------------------------------------- start

    def client_connected(self, transport: asyncio.Transport) -> None:
        self._client = transport
        self._proxy.embryos.add(self)

    def _starting(self, data: bytes) -> None:
        """Before and until the start-up packet: encryption is declined, a cancel request goes its own way."""
        self._startup += data
        while not self._started and self._connecting is None:
            if self._startup[:1] == bytes([framing.TLS_HANDSHAKE]):
                self.declined = True
                _end(self._client, "close")
                return
            if len(self._startup) < 8:
                return
            length, code = struct.unpack_from("!II", self._startup)
            if not 8 <= length <= framing.LONGEST_STARTUP:
                _end(self._client, "close")
                return
            if len(self._startup) < length:
                return
            packet, self._startup = self._startup[:length], self._startup[length:]
            if code in {framing.SSL_REQUEST, framing.GSS_REQUEST}:
                self.declined = True
                self.write_client(b"N")
                continue
            self.declined = False
            if code == framing.CANCEL_REQUEST:
                self._connecting = asyncio.get_running_loop().create_task(self._cancel(packet))
                return
            self.id = next(_numbers)
            self.app = framing.startup_parameters(packet).get("application_name", "")
            if self._proxy.tells_worker and code >> 16 == 3:
                packet = framing.with_parameter(packet, "qp.worker", str(self.worker))
            self._proxy.sessions.append(self)
            self._connecting = asyncio.get_running_loop().create_task(self._connect(packet))

    async def _connect(self, packet: bytes) -> None:
        try:
            await self._proxy.connect_upstream(lambda: ServerSide(self))
        except OSError:
            self._server_gone = True
            _end(self._client, "reset")
            self._forget()
            return
        if self._server is None or self._client_gone:
            _end(self._server, "reset")
            return
        self._server.write(packet)
        self._started = True
        early, self._startup = self._startup, b""
        if early:
            self._client_bytes(early)
        self.refresh()

    async def _cancel(self, packet: bytes) -> None:
        """Pass a cancel request on; the client may believe it is done once the server has hung up."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        class Canceller(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                cast("asyncio.Transport", transport).write(packet)

            def connection_lost(self, _: Exception | None) -> None:
                if not done.done():
                    done.set_result(None)

        try:
            await self._proxy.connect_upstream(Canceller)
            await done
        except OSError:
            pass  # the server is gone: nothing to cancel
        finally:
            self._server_gone = True
            _end(self._client, "close")

    def server_connected(self, side: ServerSide, transport: asyncio.Transport) -> None:
        self._server_side, self._server = side, transport

    def refresh(self) -> None:
        """Work out anew which side may pass whole chunks."""
        proxy = self._proxy
        if self._server_side is None or not self._started:
            return
        self._client_side.direct = (
            self.to_server.clear and self._gate is None and not self._undecided and not proxy.request_holds
        )
        self._server_side.direct = self.to_client.clear and self._withheld is None and not proxy.reply_holds

    # ---------------------------------------------------------------- the client's messages

    def write_server(self, data: bytes) -> None:
        if self._server is not None and not self._server_gone:
            self._server.write(data)

    def _client_bytes(self, data: bytes | None) -> None:
        """What the client sent, after the cable; None is its end."""
        if data is None:
            self._client_end()
            return
        if not self._started:
            self._starting(data)
            return
        data, marks = self.front.feed(data)
        at = 0
        for mark in marks:
            if mark > at:
                self._request(data[at:mark], whole=False)
            at = end_of(data, mark)
            self._request(data[mark:at], whole=True)
        if at < len(data):
            self._request(data[at:], whole=False)

    def _request(self, piece: bytes, *, whole: bool) -> None:
        """One message (``whole``) or bytes of no interest: pass it on or hold it."""
        if self._gate is not None:
            self._queue.append((piece, whole))
            if not self._struck and self._noticed and not self._will_be_ready():
                self._strike_or_pass(self._noticed)
        elif self._undecided:
            self._queue.append((piece, whole))
            if whole:
                self._decide(piece)
        elif whole and self._proxy.request_holds and self._stops(piece):
            self._queue.append((piece, whole))
        else:
            self._pass(piece, whole=whole)

    def _pass(self, piece: bytes, *, whole: bool) -> None:
        if whole:
            self.sent(piece, 0)
        self.write_server(piece)

    def _will_be_ready(self) -> bool:
        """Whether the server will say ReadyForQuery without anything more from the client."""
        return any(kind in {"query", "sync"} for kind, _ in self._awaited)

    def _stops(self, piece: bytes) -> bool:
        """Whether this message must wait: a hold wants it, or it is a Parse and only the Bind can tell."""
        kind = piece[0]
        if kind == _PARSE:
            statement = self._parsed(piece, 0)
            if not self._wants(RequestView(self, statement.sql, statement.fingerprint, *self._unbound(statement))):
                self._undecided = True
            self.refresh()
            return True
        if kind == _QUERY:
            stopped = self._wants(self._view(self._queried(piece, 0)))
        elif kind == _BIND:
            stopped = self._wants(self._view(self._bound(piece, 0)[1]))
        else:
            return False
        if not stopped:
            self._pardoned = None
        return stopped

    def _unbound(
        self, statement: Statement
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool, KnownJobs]:
        return statement.changes(self._proxy.book), (), (), False, self._proxy.known

    def _decide(self, piece: bytes) -> None:
        """A Parse waits. A Bind decides; a Sync or Flush means that the client waits for the Parse alone."""
        kind = piece[0]
        if kind == _PARSE:
            statement = self._parsed(piece, 0)
            self._wants(RequestView(self, statement.sql, statement.fingerprint, *self._unbound(statement)))
        elif kind == _BIND and self._wants(self._view(self._bound(piece, 0)[1])):
            pass
        elif kind in {_BIND, _SYNC, _FLUSH, _TERMINATE, _QUERY}:
            self._undecided = False
            self._pardoned = None
            queue, self._queue = self._queue, []
            for number, (waiting, whole) in enumerate(queue):
                if number == len(queue) - 1 and kind == _QUERY:
                    self._request(waiting, whole=whole)
                else:
                    self._pass(waiting, whole=whole)
            self.refresh()

    def _view(self, running: Running) -> RequestView:
        statement = running.statement
        changes = statement.changes(self._proxy.book)
        return RequestView(self, statement.sql, statement.fingerprint, changes, *running.found, True, self._proxy.known)

    def _wants(self, view: RequestView) -> bool:
        """Whether an armed hold wants this statement; if so the session stands there from now on."""
        for hold in self._proxy.request_holds:
            if hold.armed and hold is not self._pardoned and hold.wanted(view):
                self._gate = hold
                self._undecided = False
                self._strike(hold, view.sql, view.key)
                return True
        return False

    def _strike(self, hold: Hold, statement: str, key: str | None) -> None:
        self._struck = True
        if self._client is not None and not self._client.is_closing():
            self._client.resume_reading()  # a hold keeps reading, or it would miss the client's death
        self.refresh()
        hold.strike(self, statement, key)

    def _strike_or_pass(self, view: NoticeView) -> None:
        """The gate was prepared when the notice passed: stand there, unless another session got there first."""
        assert self._gate is not None
        if self._gate.armed:
            self._strike(self._gate, view.sql, view.key)
        else:
            self._open_gate()

    def stands_at(self, hold: Hold) -> bool:
        return (self._gate is hold and self._struck) or self._lost_by is hold

    def let_go(self, hold: Hold) -> None:
        """The hold is released: go on with what it held."""
        if self._gate is hold:
            self._open_gate(pardoned=hold)
        if self._lost_by is hold:
            self._lost_by = None
            self._deliver()
        self.refresh()

    def _open_gate(self, pardoned: Hold | None = None) -> None:
        self._gate = self._noticed = None
        self._struck = False
        self._pardoned = pardoned
        queue, self._queue = self._queue, []
        for piece, whole in queue:
            self._request(piece, whole=whole)
        self.refresh()

    def sent(self, data: bytes, at: int) -> None:
        """A whole message goes to the server: keep in mind what it will answer."""
        kind = data[at]
        if kind == _SYNC:
            self._skipping = False
            if not self._copying_in:  # the server ignores a Sync while it takes data
                self._awaited.append(_SYNCED)
        elif kind == _PARSE:
            self._parsed(data, at)
        elif kind == _BIND:
            name, running = self._bound(data, at)
            self._portals[name] = running
            if len(self._portals) > _MOST_PORTALS:
                del self._portals[next(iter(self._portals))]
        elif kind == _EXECUTE:
            if not self._skipping:
                self._awaited.append(("execute", self._portals.get(word_at(data, at + 5), _UNKNOWN)))
        elif kind == _QUERY:
            if not self._skipping:
                self._awaited.append(("query", self._queried(data, at)))
        elif kind == _CLOSE:
            named = self._statements if data[at + 5 : at + 6] == b"S" else self._portals
            named.pop(word_at(data, at + 6), None)
        elif kind in {_COPY_DONE, _COPY_FAIL}:
            if self._copying_in:
                self._copying_in = False
            else:
                self._awaited.append(_COPY_END)
        elif kind == _FUNCTION:
            if not self._skipping:
                self._awaited.append(("query", _CALL))
        elif kind == _TERMINATE:
            self._terminated = True

    def _parsed(self, data: bytes, at: int) -> Statement:
        name = word_at(data, at + 5)
        statement = self._proxy.statement(word_at(data, at + 6 + len(name)))
        self._statements[name] = statement
        return statement

    def _bound(self, data: bytes, at: int) -> tuple[bytes, Running]:
        name = word_at(data, at + 5)
        statement = self._statements.get(word_at(data, at + 6 + len(name)), _UNKNOWN.statement)
        if not self._interested(statement):
            return name, statement.plain
        keys, jobs = self._proxy.known.in_bind(data[at + 5 : end_of(data, at)])
        more_keys, more_jobs = statement.literals(self._proxy.known)
        found = (tuple(dict.fromkeys(keys + more_keys)), tuple(dict.fromkeys(jobs + more_jobs)))
        return name, Running(statement, found)

    def _queried(self, data: bytes, at: int) -> Running:
        statement = self._proxy.statement(data[at + 5 : end_of(data, at) - 1])
        if not self._interested(statement):
            return statement.plain
        return Running(statement, statement.literals(self._proxy.known))

    def _interested(self, statement: Statement) -> bool:
        proxy = self._proxy
        return proxy.learning or proxy.armed or bool(statement.changes(proxy.book))

    # ---------------------------------------------------------------- the server's messages

    def write_client(self, data: bytes) -> None:
        if self._client is not None and not self._client_gone:
            self._client.write(data)

    def _server_bytes(self, data: bytes | None) -> None:
        """What the server sent, after the cable; None is its end."""
        if data is None:
            self._server_end()
            return
        data, marks = self.back.feed(data)
        at = 0
        for mark in marks:
            if mark > at:
                self._reply(data[at:mark])
            at = end_of(data, mark)
            self._consider_withholding()
            if not self.answered(data, mark):
                self._reply(data[mark:at])
            if data[mark] == _READY:
                self._after_ready()
        if at < len(data):
            self._reply(data[at:])

    def _reply(self, piece: bytes) -> None:
        self._consider_withholding()
        if self._withheld is not None:
            self._withheld.append(piece)
        else:
            self.write_client(piece)

    def _consider_withholding(self) -> None:
        """Withhold from here on if a reply hold wants the statement that is being answered, or the transaction it is in."""
        if self._withheld is not None or not self._proxy.reply_holds:
            return
        head = self._head()
        if any(
            hold.armed and (hold in self._wanted or (head is not None and hold.candidate(self._view(head[1]))))
            for hold in self._proxy.reply_holds
        ):
            self._withheld = []
            self.refresh()

    def _after_ready(self) -> None:
        """The server is ready: a reply that is withheld is either lost for good or delivered."""
        durable, self._durable = self._durable, {}
        if self._lost_by is not None:
            return
        for hold, view in durable.items():
            if hold.armed:
                self._lost_by = hold
                self._withheld = [] if self._withheld is None else self._withheld
                if self._client is not None and not self._client.is_closing():
                    self._client.resume_reading()
                hold.strike(self, view.sql, view.key)
                break
        else:
            self._deliver()
        self.refresh()

    def _deliver(self) -> None:
        withheld, self._withheld = self._withheld, None
        if withheld:
            self.write_client(b"".join(withheld))
        if self._server_end_waits:
            _end(self._client, "close")

    def _head(self) -> _Awaited | None:
        """The statement that the server is answering, or None."""
        awaited = self._awaited
        while awaited and awaited[0] is _COPY_END:
            awaited.popleft()
        return awaited[0] if awaited and awaited[0] is not _SYNCED else None

    def answered(self, data: bytes, at: int) -> bool:
        """A whole message came from the server: record what it says. True when it is ours and not for the client."""
        kind = data[at]
        if kind == _READY:
            self._is_ready(data[end_of(data, at) - 1])
        elif kind in {_COMPLETE, _EMPTY, _SUSPENDED}:
            self._completed(data[at + 5 : end_of(data, at) - 1] if kind == _COMPLETE else b"")
        elif kind == _NOTICE:
            said = framing.announcement(data[at + 4 : end_of(data, at)])
            if said is not None:
                self._announced(said)
                return True
        elif kind == _ERROR:
            self._has_failed(framing.sqlstate(data[at + 5 : end_of(data, at)]))
        elif kind == _KEY and end_of(data, at) >= at + 9:
            self.pid = framing.int_at(data, at + 5)
        elif kind in {_COPY_IN, _COPY_BOTH}:
            self._takes_data()
        return False

    def _is_ready(self, status: int) -> None:
        self._ready = status
        if not self.opened:
            self.opened = True
            self._proxy.opened += 1
            self._proxy.recorder.record(SessionOpened(self.id, self.worker, self.pid, self.app))
            return
        awaited = self._awaited
        while awaited:
            kind, running = awaited.popleft()
            if kind == "query":
                self._finish(running, "; ".join(self._tags), self._sqlstate)
                self._tags.clear()
                self._sqlstate = None
                break
            if kind == "sync":
                break
        if status == IDLE:
            if self._wanted:
                if not self._failed and self._last_tag != b"ROLLBACK":
                    self._durable |= self._wanted
                self._wanted = {}
            if self._unsettled:
                self._unsettled = False
                self._proxy.recorder.record(Settled(self.id, self.worker, self.pid))
        self._failed = False
        self._last_tag = b""
        if self._gate is not None and not self._struck and self._noticed is not None:
            if status == IN_TRANSACTION:
                self._strike_or_pass(self._noticed)
            else:
                assert isinstance(self._gate, NoticeHold)
                self._gate.miss()
                self._proxy.holds_changed()
                self._open_gate()

    def _completed(self, tag: bytes) -> None:
        self._last_tag = tag
        if tag == b"COMMIT" and self._wanted:
            self._durable |= self._wanted
            self._wanted = {}
        head = self._head()
        if head is None:
            return
        kind, running = head
        if kind == "query":
            self._tags.append(tag.decode("utf-8", "replace"))
            return
        self._awaited.popleft()
        self._finish(running, tag.decode("utf-8", "replace"), None)

    def _has_failed(self, sqlstate: str) -> None:
        self._failed = True
        self._copying_in = False
        head = self._head()
        if head is not None and head[0] == "query":
            self._sqlstate = sqlstate
            return
        if head is not None:
            self._finish(head[1], "", sqlstate)
        while self._awaited and self._awaited[0] is not _SYNCED:
            self._awaited.popleft()
        self._skipping = not self._awaited and self.opened

    def _takes_data(self) -> None:
        """The server wants COPY data. A Sync that it meets before the data's end is ignored and never answered."""
        awaited = self._awaited
        if self._head() is None:
            return
        first, rest = awaited[0], deque(itertools.islice(awaited, 1, None))
        while rest and rest[0] is _SYNCED:
            rest.popleft()
        if rest and rest[0] is _COPY_END:
            rest.popleft()
        else:
            self._copying_in = True
        self._awaited = deque([first, *rest])

    def _finish(self, running: Running, tag: str, sqlstate: str | None) -> None:
        self._last = running
        changes = running.statement.changes(self._proxy.book)
        moved, self._moved = self._moved, 0
        if changes:
            self._unsettled = True
            keys, jobs = running.found
            self._proxy.recorder.record(
                Attempted(
                    self.id,
                    self.worker,
                    self.pid,
                    changes,
                    running.statement.fingerprint,
                    moved,
                    tag,
                    sqlstate,
                    keys,
                    jobs,
                )
            )

    def _announced(self, said: framing.Announcement) -> None:
        head = self._head()
        statement = (head[1] if head else self._last).statement
        proxy = self._proxy
        if proxy.learning:
            proxy.book.learn(statement.fingerprint, said.change)
        self._moved += 1
        self._unsettled = True
        proxy.recorder.record(
            Noticed(self.id, self.worker, self.pid, said.xid, said.seq, said.change, said.key, statement.fingerprint)
        )
        if not proxy.armed:
            return
        view = NoticeView(
            self, said.seq, said.xid, said.change, said.key, said.job, statement.sql, statement.fingerprint
        )
        for hold in proxy.notice_holds:
            if self._gate is None and hold.armed and hold.wanted(view):
                self._gate, self._noticed = hold, view
                self.refresh()
        for lost in proxy.reply_holds:
            if lost.armed and lost not in self._wanted and lost.wanted(view):
                self._wanted[lost] = view

    # ---------------------------------------------------------------- the ends

    def client_lost(self, *, gone: bool = False) -> None:
        """The client's socket has ended (``gone``: is closed for good)."""
        self._closed("client")
        if not self._client_gone:
            self._client_gone = True
            self.to_server.put(None)
        if gone:
            self._client = None
            self._forget()

    def _client_end(self) -> None:
        """The client's end has come through the cable: mirror it, and drop what was held."""
        self._queue.clear()
        self._gate = self._noticed = None
        self._undecided = self._struck = False
        if self._connecting is not None and not self._started and self.id:
            self._connecting.cancel()
        _end(self._server, "close")

    def server_lost(self, *, gone: bool = False) -> None:
        """The server's socket has ended (``gone``: is closed for good)."""
        self._closed("client" if self._terminated else "server")
        if not self._server_gone:
            self._server_gone = True
            self.to_client.put(None)
        if gone:
            self._server = None
            self._forget()

    def _server_end(self) -> None:
        if self._lost_by is not None:
            self._server_end_waits = True
            return
        self._server_end_waits = True
        self._deliver()

    def _closed(self, by: str) -> None:
        if self.closed_by is not None:
            return
        self.closed_by = by
        if self.opened:
            if self._sqlstate is not None and (head := self._head()) is not None:  # the server's last word
                self._finish(head[1], "; ".join(self._tags), self._sqlstate)
            self._proxy.recorder.record(SessionClosed(self.id, self.worker, self.pid, by))

    def _forget(self) -> None:
        if self._client is None:
            self._proxy.embryos.discard(self)
            if self.declined:
                self._proxy.hung_up_on_refusal = True
        if self._client is None and self._server is None and self in self._proxy.sessions:
            self._proxy.sessions.remove(self)

    def sever(self, side: Side = "both", ending: Ending = "reset") -> None:
        """End one side or both, by us. The other side is left as it is and learns nothing."""
        self._closed("harness")
        if side != "server":
            self._client_gone = True  # so that its end is not mirrored
            self._queue.clear()
            self._gate = self._noticed = None
            self._undecided = self._struck = False
            self._withheld = self._lost_by = None
            _end(self._client, ending)
        if side != "client":
            self._server_gone = True
            if self._connecting is not None and not self._started:
                self._connecting.cancel()
            _end(self._server, ending)

    # ---------------------------------------------------------------- backpressure

    def server_full(self, *, full: bool) -> None:
        """The server reads slowly: read the client slowly, unless a hold must see its end."""
        if self._client is None or self._client.is_closing():
            return
        if full and not self._struck:
            self._client.pause_reading()
        else:
            self._client.resume_reading()

    def client_full(self, *, full: bool) -> None:
        """The client reads slowly: read the server slowly."""
        if self._server is None or self._server.is_closing():
            return
        if full:
            self._server.pause_reading()
        else:
            self._server.resume_reading()
