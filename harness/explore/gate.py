"""Where a worker stands still while it is stepped: at each request that is a step, and at each request to the sink."""

import asyncio
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from harness.history.recorder import PlayRecorder
from harness.sink.hold import HeldCall
from harness.sink.ledger import Kind, Ledger
from harness.sink.sink import Sink
from harness.wire.conversation import BIND
from harness.wire.holds import RequestHold, RequestView
from harness.wire.proxy import Proxy

if TYPE_CHECKING:
    from harness.wire.session import Session

# What touches no table and takes no lock on a row: it passes unheld.
_FREE = re.compile(
    r"(?:savepoint|release(?: savepoint)?|set|reset|show|listen|unlisten|discard|deallocate|close)\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"(?:begin|start transaction)\b[^;]*", re.IGNORECASE)
_ENDS = re.compile(r"(?:commit|rollback|end|abort)\b(?!.*\bto\b)", re.IGNORECASE)


def is_free(fingerprint: str) -> bool:
    """Whether a statement is no step of anybody's. A message of several statements is one step."""
    return not fingerprint or (";" not in fingerprint and bool(_FREE.match(fingerprint))) or fingerprint == "select ?"


def begins_transaction(fingerprint: str) -> bool:
    """Whether a statement is BEGIN alone. It is held where a worker looks for jobs, since now() stands still from there on."""
    return bool(_BEGINS.fullmatch(fingerprint))


def ends_transaction(fingerprint: str) -> bool:
    """Whether a statement is COMMIT or ROLLBACK."""
    return bool(_ENDS.match(fingerprint))


@dataclass(frozen=True)
class Standing:
    """What a worker stands before: a statement on the wire, or a call or question at the sink."""

    order: int
    session: "Session | None"
    view: RequestView | None
    call: "Waiting | None" = None

    @property
    def fingerprint(self) -> str:
        if self.view is not None:
            return self.view.fingerprint
        return f"sink {self.call.what}" if self.call is not None else ""

    @property
    def changes(self) -> tuple[str, ...]:
        """What its statement is known to do by now; it may have been held before that was learned."""
        return self.session._proxy.book.changes(self.fingerprint) if self.session is not None else ()

    def values(self) -> tuple["Value", ...] | None:
        """The parameters of the statement that is held, as they travel. None when the message cannot be read."""
        if self.session is not None:
            for piece, whole in self.session._queue:
                if whole and piece[0] == BIND:
                    return bind_values(piece[5:])
        return ()


class WireGate(RequestHold):
    """Holds every step of one worker, each of its connections by itself."""

    def __init__(self, proxy: Proxy, arrived: Callable[[], None], order: Callable[[], int]) -> None:
        super().__init__(self._look, proxy.sessions, proxy.holds_changed, every=True)
        self.standing: dict[Session, Standing] = {}
        self._arrived = arrived
        self._order = order
        self._view: RequestView | None = None
        proxy.request_holds.append(self)
        proxy.holds_changed()

    def _look(self, view: RequestView) -> bool:
        if not view.bound or is_free(view.fingerprint):
            return False
        self._view = view
        return True

    def strike(self, session: "Session", statement: str, key: str | None) -> None:
        super().strike(session, statement, key)
        self.standing[session] = Standing(self._order(), session, self._view)
        self._arrived()

    def pass_on(self, session: "Session") -> None:
        """Let this one connection send what it holds."""
        del self.standing[session]
        session.let_go(self)

    def drop_gone(self) -> None:
        """Forget connections that have ended meanwhile."""
        for session in [each for each in self.standing if not each.open or not each.stands_at(self)]:
            del self.standing[session]


Value = tuple[bytes | None, bool]  # a parameter, null as None, and whether it is in binary form


def bind_values(body: bytes) -> tuple[Value, ...] | None:
    """All parameters of a Bind body, nulls in their places."""
    found: list[Value] = []
    try:
        at = body.index(b"\0", body.index(b"\0") + 1) + 1
        (count,) = struct.unpack_from("!H", body, at)
        formats = struct.unpack_from(f"!{count}H", body, at + 2)
        at += 2 + 2 * count
        (total,) = struct.unpack_from("!H", body, at)
        at += 2
        for number in range(total):
            (size,) = struct.unpack_from("!i", body, at)
            at += 4
            binary = bool(formats[number if count > 1 else 0]) if count else False
            found.append((body[at : at + size] if size >= 0 else None, binary))
            at += max(size, 0)
    except (ValueError, struct.error, IndexError):
        return None
    return tuple(found)


@dataclass(eq=False)
class Waiting:
    """A request that stands in the sink."""

    worker: int
    key: str
    what: str  # "call" or "ask"
    order: int
    go: asyncio.Event


class SteppedSink(Sink):
    """A sink in which every call and every question waits for its turn; one for all schedules, begun anew for each."""

    def __init__(
        self, kind: Kind, recorder: PlayRecorder, arrived: Callable[[], None], order: Callable[[], int]
    ) -> None:
        super().__init__(kind, recorder)
        self.service = self
        self.waiting: list[Waiting] = []
        self._arrived = arrived
        self._order = order

    def begin(self, recorder: PlayRecorder) -> None:
        """Forget every effect, and record into this play from now on."""
        self._recorder = recorder
        self._ledger = Ledger(self.kind)

    async def serve(self, call: HeldCall) -> int | None:
        """Hold a call before its effect."""
        await self._turn(call.worker, call.key, "call")
        return None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            worker, _, key = request.raw_path.removeprefix("/").partition("/")
            if worker.isdigit():
                await self._turn(int(worker), key, "ask")
        return await super()._handle(request)

    async def _turn(self, worker: int, key: str, what: str) -> None:
        waiting = Waiting(worker, key, what, self._order(), asyncio.Event())
        self.waiting.append(waiting)
        self._arrived()
        try:
            # Bounded by the caller's own connection and by the sink's close, both of which cancel the request.
            await waiting.go.wait()
        finally:
            if waiting in self.waiting:
                self.waiting.remove(waiting)
            self._arrived()

    def pass_on(self, waiting: Waiting) -> None:
        """Let one request go on."""
        self.waiting.remove(waiting)
        waiting.go.set()
