"""One connection of a worker: how it starts and ends, and where on the wire it is made to stand still.

Everything that a chunk says is recorded before any byte of it is passed on: the order of events is the product's proof.
"""

import asyncio
import itertools
import struct
from typing import TYPE_CHECKING, Literal, cast

from harness.history.events import SessionClosed
from harness.wire import conversation as said
from harness.wire import framing
from harness.wire.conversation import Conversation
from harness.wire.framing import IDLE, IN_TRANSACTION, Scanner, end_of
from harness.wire.holds import Ending, Hold, NoticeHold, NoticeView, ReplyHold, RequestView
from harness.wire.link import Link
from harness.wire.sockets import ClientSide, ServerSide, end

if TYPE_CHECKING:
    from harness.wire.proxy import Proxy

Side = Literal["client", "server", "both"]

_numbers = itertools.count(1)


class Session:
    """A worker's connection. ``status`` is what the last ReadyForQuery said: I, T or E; "" before the first."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self.id = 0  # given with the start-up packet
        self.worker = proxy.worker
        self.pid = 0
        self.app = ""
        self.closed_by: str | None = None
        self.declined = False  # encryption was asked for and declined, nothing came since
        self.front = Scanner(framing.FRONT)
        self.back = Scanner(framing.BACK)
        cut, delay_seconds = proxy.is_cut, proxy.delay_seconds
        up, down = proxy.buckets
        self.to_server = Link(
            self._client_bytes, self.refresh, self.server_full, cut=cut, delay_seconds=delay_seconds, bucket=up
        )
        self.to_client = Link(
            self._server_bytes, self.refresh, self.client_full, cut=cut, delay_seconds=delay_seconds, bucket=down
        )
        self._server_brakes = self._client_brakes = 0  # of the socket and of the link: how many are on
        self.talk = Conversation(self, proxy)
        self.client_side = ClientSide(self)
        self._server_side: ServerSide | None = None
        self._client: asyncio.Transport | None = None
        self._server: asyncio.Transport | None = None
        self._client_gone = False
        self._server_gone = False
        self._startup = b""
        self._started = False
        self._connecting: asyncio.Task[None] | None = None
        self._given_up = False
        # Wanted changes of the transaction, and those that have become durable.
        self._wanted: dict[ReplyHold, NoticeView] = {}
        self._durable: dict[ReplyHold, NoticeView] = {}
        # Where it stands still.
        self._gate: Hold | None = None
        self._struck = False  # the gate's hold is hit, not only prepared
        self._noticed: NoticeView | None = None
        self._flushed = False  # we have asked for the answers to what came before the gate
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
        return chr(self.talk.status) if self.talk.status else ""

    @property
    def open_transaction(self) -> int | None:
        """A number that tells this session's open transaction from its others; None outside a transaction."""
        return self.talk.transactions_ended if self.status in {"T", "E"} else None

    @property
    def opened(self) -> bool:
        """Whether it was ever ready."""
        return bool(self.talk.status)

    @property
    def open(self) -> bool:
        """Whether it is ready and neither side has ended."""
        return self.opened and self.closed_by is None

    @property
    def answers(self) -> int:
        """How often the server has answered outside a transaction, or ended one, since it was ready."""
        return max(0, self.talk.transactions_ended - 1)

    @property
    def running(self) -> str:
        """The text of the statement that the server is busy with, or ""."""
        running = self.talk.running
        return running.statement.sql if running else ""

    @property
    def has_held(self) -> bool:
        """Whether anything that the client sent is held back right now."""
        return bool(self._queue)

    def ask_for_answers(self) -> bool:
        """Have the server send what it owes; whether it owes nothing any more.

        In a pipeline it keeps its answers until it is told to send them, and what tells it may be held: then we do, once.
        """
        if not self.talk.quiet and not self.talk.will_be_ready and not self._flushed:
            self._flushed = True
            self.write_server(framing.message(b"H", b""))
        return self.talk.quiet

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
                end(self._client, "close")
                return
            if len(self._startup) < 8:
                return
            length, code = struct.unpack_from("!II", self._startup)
            if not 8 <= length <= framing.LONGEST_STARTUP:
                end(self._client, "close")
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
            end(self._client, "reset")
            self._forget()
            return
        if self._server is None or self._client_gone or self._server_gone:
            end(self._server, "reset")
            return
        self._server.write(packet)
        self._started = True
        early, self._startup = self._startup, b""
        if early:
            self._client_bytes(early)
        self.refresh()

    def _stop_connecting(self) -> None:
        """Give up a connection to the server that is not made yet. One that is made is ended as any other."""
        if self._connecting is not None and not self._started and self._server is None:
            self._given_up = True
            self._connecting.cancel()

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
            end(self._client, "close")

    def server_connected(self, side: ServerSide, transport: asyncio.Transport) -> None:
        if self._given_up:
            # uvloop still says so of a connection that was cancelled as it was made, and never tells of its end: nobody
            # may wait for that.
            end(transport, "reset")
            return
        self._server_side, self._server = side, transport

    def refresh(self) -> None:
        """Work out anew which side may pass whole chunks."""
        proxy = self._proxy
        if self._server_side is None or not self._started:
            return
        self.client_side.direct = (
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
            if not self._struck and self._noticed and not self.talk.will_be_ready:
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
            self.talk.sent(piece, 0)
        self.write_server(piece)

    def _stops(self, piece: bytes) -> bool:
        """Whether this message must wait: a hold wants it, or it is a Parse and only the Bind can tell."""
        view = self.talk.view(piece)
        if view is None:
            return False
        stopped = self._wants(view)
        if not view.bound:
            self._undecided = not stopped
            self.refresh()
            return True
        if not stopped:
            self._pardoned = None
        return stopped

    def _decide(self, piece: bytes) -> None:
        """A Parse waits. A Bind decides; a Sync or Flush means that the client waits for the Parse alone."""
        kind = piece[0]
        if kind in {said.PARSE, said.BIND}:
            view = self.talk.view(piece)
            assert view is not None
            if self._wants(view) or kind == said.PARSE:
                return
        elif kind not in {said.SYNC, said.FLUSH, said.TERMINATE, said.QUERY}:
            return
        self._undecided = False
        self._pardoned = None
        queue, self._queue = self._queue, []
        last = queue.pop()
        for waiting, whole in queue:
            self._pass(waiting, whole=whole)
        if kind == said.QUERY:
            self._request(last[0], whole=True)
        else:
            self._pass(last[0], whole=True)
        self.refresh()

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
        self._struck, self._flushed = True, False
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
            if not self.talk.answered(data, mark):
                self._reply(data[mark:at])
            if data[mark] == said.READY:
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
        running = self.talk.running
        if any(
            hold.armed and (hold in self._wanted or (running is not None and hold.candidate(self.talk.seen(running))))
            for hold in self._proxy.reply_holds
        ):
            self._withheld = []
            self.refresh()

    @property
    def involved(self) -> bool:
        """Whether the end of a transaction matters to a hold."""
        return bool(self._wanted or self._durable or self._noticed)

    def has_noticed(self, view: NoticeView) -> None:
        """A row change was announced: prepare the holds that want it."""
        for hold in self._proxy.notice_holds:
            if self._gate is None and hold.armed and hold.wanted(view):
                self._gate, self._noticed = hold, view
                self.refresh()
        for lost in self._proxy.reply_holds:
            if lost.armed and lost not in self._wanted and lost.wanted(view):
                self._wanted[lost] = view

    def has_committed(self) -> None:
        """The server said COMMIT: what was wanted in the transaction is durable."""
        self._durable |= self._wanted
        self._wanted = {}

    def is_ready(self, status: int, *, kept: bool) -> None:
        """The server is ready, which is not passed on yet; ``kept`` says that nothing failed or was rolled back."""
        if status == IDLE:
            if kept:
                self.has_committed()
            self._wanted = {}
        if self._gate is not None and not self._struck and self._noticed is not None:
            if status == IN_TRANSACTION:
                self._strike_or_pass(self._noticed)
            else:
                assert isinstance(self._gate, NoticeHold)
                self._gate.miss()
                self._proxy.holds_changed()
                self._open_gate()

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
            end(self._client, "close")

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
        if self.id:
            self._stop_connecting()
        end(self._server, "close")

    def server_lost(self, *, gone: bool = False) -> None:
        """The server's socket has ended (``gone``: is closed for good)."""
        self._closed("client" if self.talk.terminated else "server")
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
            self.talk.last_words()
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
            end(self._client, ending)
        if side != "client":
            self._server_gone = True
            self._stop_connecting()
            end(self._server, ending)

    # ---------------------------------------------------------------- backpressure

    def server_full(self, *, full: bool) -> None:
        """The server reads slowly, or the way to it is narrow: read the client slowly, unless a hold must see its end."""
        self._server_brakes += 1 if full else -1
        if self._client is None or self._client.is_closing():
            return
        if self._server_brakes and not self._struck:
            self._client.pause_reading()
        else:
            self._client.resume_reading()

    def client_full(self, *, full: bool) -> None:
        """The client reads slowly, or the way to it is narrow: read the server slowly."""
        self._client_brakes += 1 if full else -1
        if self._server is None or self._server.is_closing():
            return
        if self._client_brakes:
            self._server.pause_reading()
        else:
            self._server.resume_reading()
