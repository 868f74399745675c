"""The HTTP server that stands for the outside world: one URL per worker, every call recorded on the run's one clock.

It refuses to guess: an effect is applied in one step and recorded before any reply, and a caller that is gone is told from
one that is slow by its socket.
"""

import asyncio
import json
import select
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import unquote_to_bytes

from aiohttp import web

from harness.contracts.point import Point
from harness.contracts.problem import EnvironmentFailed
from harness.history.events import Answered, Applied, Asked, Called, Saw
from harness.sink.hold import HeldCall, SinkHold
from harness.sink.ledger import Effect, Kind, Ledger
from harness.sink.script import Deed, Script
from harness.sink.service import Records, Service

# A key of 4 kB may become 12 kB of %XX, and may stand in a header too.
LONGEST_LINE_BYTES = 256 * 1024
GOODBYE_SECONDS = 2.0
GONE = "caller gone"
# Linux tells a half-closed peer apart; elsewhere only a full hang-up shows.
HUNG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
STATUS = {"effect": 200, "known": 200, "stale": 409}


class Sink:
    """A sink of one kind.

    ``apply_late`` makes it apply a held call, once released, although its caller has died. ``service_seconds`` is how
    long the outside takes before an effect; ``service`` decides that, and whether it fails, for each call by itself.
    With a ``secret`` in its path only those who were given the URL can call: for a sink that other machines must reach.
    """

    def __init__(
        self, kind: Kind, recorder: Records, host: str = "127.0.0.1", port: int = 0, secret: str | None = None
    ) -> None:
        self.kind = kind
        self.apply_late = False
        self.before_reply: Callable[[HeldCall], Awaitable[None]] | None = None  # a last look while the call is open
        self.service_seconds = 0.0
        self.service: Service | None = None
        self._recorder = recorder
        self._host = host
        self._wanted_port = port
        self._prefix = f"/{secret}" if secret else ""
        self._ledger = Ledger(kind)
        self._calls = 0
        self._holds: list[SinkHold] = []
        self._scripts: list[Script] = []
        self._links: dict[int, asyncio.Event] = {}  # of workers that were cut off; set when healed
        self._late: set[asyncio.Task[None]] = set()
        self._handling: set[asyncio.Task[object]] = set()
        self._why_broken = GONE
        self._http: web.Server | None = None
        self._port_keeper: socket.socket | None = None
        self._listener: asyncio.Server | None = None

    # -- life

    async def start(self) -> None:
        """Listen on a free port, which stays ours until ``close`` even while the sink is down."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        keeper = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Bound and never listening: the port cannot be taken by others, and whoever calls while we are down is refused.
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            keeper.bind((self._host, self._wanted_port))
        except OSError as error:
            keeper.close()
            raise EnvironmentFailed(f"the sink cannot listen on {self._host}: {error.strerror}") from error
        self._port_keeper = keeper
        self._http = web.Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            max_line_size=LONGEST_LINE_BYTES,
            max_field_size=LONGEST_LINE_BYTES,
        )
        await self.up()

    async def close(self) -> None:
        """Stop listening, break what is still open, and wait until every call has been recorded as ended."""
        self._why_broken = "sink closed"
        await self._stop_listening()
        for task in tuple(self._late):
            task.cancel()
        if self._http is not None:
            await self._http.shutdown(GOODBYE_SECONDS)
        if self._port_keeper is not None:
            self._port_keeper.close()
            self._port_keeper = None

    async def down(self) -> None:
        """Refuse connections and break the open ones, as a service does that has crashed. What was applied stays applied."""
        self._why_broken = "sink down"
        await self._stop_listening()
        self._why_broken = GONE

    async def up(self) -> None:
        """Listen (again) on the same port. Does nothing when it already does."""
        if self._listener is not None or self._http is None:
            return
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._http, self._host, self.port, reuse_port=True, backlog=1024
            )
        except OSError as error:
            raise EnvironmentFailed(f"the sink cannot listen on {self._host}:{self.port}: {error.strerror}") from error

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self._http.connections if self._http is not None else ():
            if connection.transport is not None:
                connection.transport.abort()
        if self._handling:
            await asyncio.wait(self._handling, timeout=GOODBYE_SECONDS)

    # -- addresses

    @property
    def port(self) -> int:
        if self._port_keeper is None:
            raise EnvironmentFailed("the sink is not started: it has no port yet")
        return int(self._port_keeper.getsockname()[1])

    def url(self, worker: int) -> str:
        """The address that worker is given as QUEUEPROOF_SINK; a job's key follows after a slash."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}{self._prefix}/{worker}"

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Everything applied so far, in order."""
        return tuple(self._ledger.effects)

    # -- controls

    def hold(self, point: Point, worker: int | None = None, key: str | None = None, times: int | None = 1) -> SinkHold:
        """Stop the next ``times`` matching calls (None: all) before their effect (CALLING) or before their reply (CALLED)."""
        if point not in (Point.CALLING, Point.CALLED):
            raise ValueError(f"the sink cannot hold at {point}: it knows only calling and called")
        hold = SinkHold(point, worker, key, times)
        self._holds = [other for other in self._holds if not other.released]
        self._holds.append(hold)
        return hold

    def answer_with(
        self, status: int, key: str | None = None, worker: int | None = None, times: int | None = None
    ) -> Script:
        """Refuse with a 4xx or 5xx, without an effect."""
        return self._instruct("answer", status, key, worker, times)

    def apply_then_refuse(
        self, status: int = 500, key: str | None = None, worker: int | None = None, times: int | None = 1
    ) -> Script:
        """Apply the effect and answer with an error all the same."""
        return self._instruct("apply then answer", status, key, worker, times)

    def drop_reply(self, key: str | None = None, times: int | None = 1, worker: int | None = None) -> Script:
        """Apply the effect and close the connection without a reply."""
        return self._instruct("apply then drop", 0, key, worker, times)

    def answer_twice(self, key: str | None = None, times: int | None = None, worker: int | None = None) -> Script:
        """Apply the effect and send the whole reply twice on the connection."""
        return self._instruct("answer twice", 0, key, worker, times)

    def _instruct(self, deed: Deed, status: int, key: str | None, worker: int | None, times: int | None) -> Script:
        if deed in {"answer", "apply then answer"} and not 400 <= status <= 599:
            raise ValueError(f"the sink refuses with 400 to 599, not with {status}")
        script = Script(deed, status, key, worker, times)
        self._scripts = [other for other in self._scripts if not other.spent]
        self._scripts.append(script)
        return script

    def cut(self, worker: int) -> None:
        """Cut this worker's network: its requests do not arrive and its replies do not leave, and nobody is told."""
        if worker not in self._links or self._links[worker].is_set():
            self._links[worker] = asyncio.Event()

    def heal(self, worker: int) -> None:
        """Mend it: what was on its way arrives, unless its sender has given up meanwhile."""
        if worker in self._links:
            self._links[worker].set()

    # -- requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        try:
            async for _ in request.content.iter_any():
                pass  # the body says nothing to us, but a caller may insist on sending one
            invited = request.raw_path.startswith(f"{self._prefix}/")
            named = _worker_and_key(request.raw_path[len(self._prefix) :]) if invited else None
            if named is None:
                self._recorder.record(Saw("a request that names no job", f"{request.method} {request.raw_path[:200]}"))
                return _said(404, "say /<worker>/<job key>: POST to call, GET to ask")
            worker, key = named
            if worker in self._links:
                await self._links[worker].wait()
                if _gone(request):
                    return _said(503, GONE)
            if request.method == "POST":
                return await self._call(request, worker, key)
            if request.method == "GET":
                return self._ask(request, worker, key)
            return _said(405, "POST to call, GET to ask")
        finally:
            self._handling.discard(task)

    def _ask(self, request: web.BaseRequest, worker: int, key: str) -> web.Response:
        effect = self._ledger.ask(key, _header(request, "Idempotency-Key")) if self._ledger.can_be_asked else None
        self._recorder.record(Asked(worker, key, effect is not None))
        if not self._ledger.can_be_asked:
            return _said(405, "this sink is naive: it cannot be asked")
        if effect is None:
            return _said(404, "no effect is known for this key")
        return _json(200, {"outcome": "effect", "key": effect.key, "operation_key": effect.operation_key})

    async def _call(self, request: web.BaseRequest, worker: int, key: str) -> web.StreamResponse:
        self._calls += 1
        call = HeldCall(
            self._calls, worker, key, _header(request, "Idempotency-Key"), _header(request, "Fencing-Token")
        )
        self._recorder.record(Called(call.call, worker, key, call.operation_key, call.token))
        try:
            return await self._serve(request, call)
        except asyncio.CancelledError:
            # aiohttp cancels a handler when its connection is gone: that is how a held caller's death is seen at once.
            self._broken(call, self._why_broken)
            raise
        except ConnectionError:
            self._broken(call, self._why_broken)
            return _said(503, GONE)

    async def _serve(self, request: web.BaseRequest, call: HeldCall) -> web.StreamResponse:
        await self._stand(Point.CALLING, request, call)
        script = next((script for script in self._scripts if script.takes(call.worker, call.key)), None)
        if script is not None and script.deed == "answer":
            return await self._answer(request, call, script.status, "refused as told, without an effect")
        if self.service_seconds > 0:
            await asyncio.sleep(self.service_seconds)  # a caller that dies meanwhile cancels it, as a hold
            if _gone(request):
                raise ConnectionResetError
        if self.service is not None:
            refusal = await self.service.serve(call)
            if _gone(request):
                raise ConnectionResetError
            if refusal is not None:
                return await self._answer(request, call, refusal, "failed as the mix of jobs says, without an effect")
        outcome = self._apply(call)
        await self._stand(Point.CALLED, request, call)
        if script is not None and script.deed == "apply then drop":
            self._broken(call, "reply dropped as told")
            if request.transport is not None:
                request.transport.close()
            return _said(503, "")
        if script is not None and script.deed != "answer twice":
            return await self._answer(request, call, script.status, "applied, then refused as told")
        why = "an older fencing token" if outcome == "stale" else ""
        answer = await self._answer(request, call, STATUS[outcome], why, outcome)
        if script is not None and request.transport is not None:
            request.transport.write(_again(STATUS[outcome], outcome))
        return answer

    async def _stand(self, point: Point, request: web.BaseRequest, call: HeldCall) -> None:
        hold = next((hold for hold in self._holds if hold.takes(point, call)), None)
        if hold is None:
            return
        try:
            await hold.until_released()
            if _gone(request):  # its death may not have been read from the socket yet
                raise ConnectionResetError
        except (asyncio.CancelledError, ConnectionError):
            if point is Point.CALLING and self.apply_late and self._why_broken == GONE:
                task = asyncio.get_running_loop().create_task(self._apply_when_released(hold, call))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
            raise

    async def _apply_when_released(self, hold: SinkHold, call: HeldCall) -> None:
        await hold.until_released()
        self._apply(call)

    def _apply(self, call: HeldCall) -> str:
        outcome = self._ledger.decide(call.call, call.worker, call.key, call.operation_key, call.token)
        self._recorder.record(Applied(call.call, call.worker, call.key, outcome))
        return outcome

    async def _answer(
        self, request: web.BaseRequest, call: HeldCall, status: int, why: str, outcome: str = "refused"
    ) -> web.StreamResponse:
        if self.before_reply is not None:
            await self.before_reply(call)
        link = self._links.get(call.worker)
        if link is not None:
            await link.wait()
        if _gone(request):
            raise ConnectionResetError
        response = _json(status, {"outcome": outcome, "why": why})
        await response.prepare(request)
        await response.write_eof()
        self._recorder.record(Answered(call.call, call.worker, call.key, status, why))
        return response

    def _broken(self, call: HeldCall, why: str) -> None:
        self._recorder.record(Answered(call.call, call.worker, call.key, None, why))


def _worker_and_key(target: str) -> tuple[int, str] | None:
    """The worker's number and the job's key, decoded exactly. The target has no parameters, so a bare ``?`` is the key's."""
    number, slash, rest = target.removeprefix("/").partition("/")
    if not slash or not rest or not (number.isascii() and number.isdigit()):
        return None
    return int(number), unquote_to_bytes(rest).decode("utf-8", "backslashreplace")


def _header(request: web.BaseRequest, name: str) -> str | None:
    value = request.headers.get(name)
    if value is None:
        return None
    # aiohttp keeps bytes that are no UTF-8 as surrogates, which no JSON file can hold.
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _gone(request: web.BaseRequest) -> bool:
    """Whether the caller has hung up, asked of its socket."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return True
    peer = transport.get_extra_info("socket")
    if peer is None or peer.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(peer.fileno(), HUNG_UP)
    return any(seen & HUNG_UP for _, seen in poll.poll(0))


def _again(status: int, outcome: str) -> bytes:
    """A second reply that nobody asked for, as it stands on the wire."""
    body = json.dumps({"outcome": outcome, "why": ""})
    return f"HTTP/1.1 {status} Again\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def _said(status: int, sentence: str) -> web.Response:
    return _json(status, {"outcome": "refused", "why": sentence})


def _json(status: int, body: dict[str, str]) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
