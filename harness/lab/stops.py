"""Stopping a worker at a named point, on the wire, inside the server, or at the sink, with the server's word as proof.

Each stop is armed before the worker can get there, reached at most once, and released (or severed) by the scenario. The
evidence it returns names the point that the *server* showed, which may differ from the one that was asked for.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.contracts.point import Point
from harness.history.events import Called, Moved
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.postgres.gates import Gates, Parked
from harness.postgres.truth import CLAIM_GATE, RENEW_GATE, RESULT_GATE, SNAPSHOT_GATE
from harness.postgres.view import ServerView
from harness.sink.hold import SinkHold
from harness.sink.sink import Sink
from harness.wire.holds import Hold, NoticeView, RequestView
from harness.wire.proxy import Proxy

RESULTS = frozenset({"complete", "fail", "release"})
_LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Evidence:
    """Where a worker stands, by what the server or the sink shows."""

    point: Point
    pid: int
    key: str | None
    proof: str
    statement: str = ""  # the fingerprint of the statement that the server shows it in, where one was asked for


@dataclass(frozen=True)
class Surroundings:
    """What the stops of one worker reach out to."""

    worker: int
    proxy: Proxy
    gates: Gates
    view: ServerView
    sink: Sink
    recorder: PlayRecorder
    ours: Callable[[str | None], bool]  # whether a key was enqueued by us


class Stop(Protocol):
    """One armed stop."""

    async def reached(self, within_seconds: float) -> Evidence:
        """Wait until the worker stands there. Raises DeadlinePassed with what was awaited."""
        ...

    async def release(self) -> None:
        """Let it go on. Releasing twice does nothing."""
        ...

    async def sever(self) -> None:
        """Let go by breaking the connection that is held, where there is one."""
        ...


class RequestStop:
    """A statement held on the wire before the server sees it: CLAIM_SENT, RESULT_SENT, RENEWING."""

    def __init__(self, point: Point, around: Surroundings, kinds: frozenset[str]) -> None:
        self._point = point
        self._around = around
        self._kinds = kinds
        self._hold = around.proxy.hold_request(self._wanted)

    def _wanted(self, request: RequestView) -> bool:
        # A Parse alone may only prepare: the client then waits for its reply, and nothing has been asked for yet.
        if not request.bound or not self._kinds & set(request.changes):
            return False
        if self._point is not Point.RESULT_SENT or "claim" not in request.changes:
            return True
        # A statement known for claims and results alike (blanked literals) is a result once this worker has called.
        return any(
            isinstance(entry.what, Called) and entry.what.worker == self._around.worker
            for entry in self._around.recorder.entries
        )

    async def reached(self, within_seconds: float) -> Evidence:
        await self._hold.reached(within_seconds)
        session = self._hold.session
        pid = session.pid if session is not None else 0
        backend = await self._around.view.backend(pid)
        shown = backend.told() if backend else f"backend {pid} is gone"
        key = self._hold.key
        return Evidence(self._point, pid, key, f"held on the wire: {self._hold.statement or ''} ({shown})")

    async def release(self) -> None:
        self._hold.release()

    async def sever(self) -> None:
        self._hold.sever()


class GateStop:
    """A backend parked inside the server: SNAPSHOT or COMMITTING.

    ``wanted`` says in which write of a request a worker is to be parked, counted from 1, or 0 for none. What comes before
    the request (a rescue, a heartbeat) passes the open gate; the request itself waits on the wire until the gate is shut,
    and is parked by it then. Without ``wanted``, whatever gets to the gate first is parked.
    """

    def __init__(
        self, point: Point, around: Surroundings, gate: int, wanted: Callable[[RequestView], int] | None = None
    ) -> None:
        self._point = point
        self._around = around
        self._gate = gate
        self._wanted = wanted
        self._sent: dict[str, tuple[str, int]] = {}  # texts that came, with their fingerprints and the writes in them
        self._hold: Hold | None = around.proxy.hold_request(self._comes, every=True) if wanted is not None else None

    def _comes(self, request: RequestView) -> bool:
        place = self._wanted(request) if self._wanted is not None and request.bound else 0
        if place:
            self._sent[request.sql] = request.fingerprint, place
        return bool(place)

    async def arm(self) -> None:
        if self._hold is None:
            await self._around.gates.shut(self._gate, self._around.worker, place=self._first)

    @property
    def _first(self) -> int:
        return 1 if self._gate == SNAPSHOT_GATE else 0

    @property
    def chooses(self) -> bool:
        """Whether it parks a worker in certain statements only."""
        return self._hold is not None

    async def shut_when_sent(self) -> bool:
        """Shut the gate before the wanted statement, once that waits on the wire, and let it go; whether the gate is shut."""
        hold = self._hold
        if hold is None or not hold.armed:
            return True
        waiting = [session for session in self._around.proxy.sessions if session.stands_at(hold)]
        # What went before it in a pipeline has passed the gate only when it is answered.
        if not waiting or not all(session.ask_for_answers() for session in waiting):
            return False
        for place in {place for _, place in self._sent.values()}:
            await self._around.gates.shut(self._gate, self._around.worker, place=place)
        hold.disarm()
        return True

    def statement_of(self, backend: Parked) -> str:
        """The fingerprint of the wanted statement that the server shows this backend in, or "" when it shows another."""
        shown = backend.query
        if not shown:
            return ""
        on_wire = {session.running for session in self._around.proxy.sessions if session.pid == backend.pid}
        for text, (known, place) in self._sent.items():
            if backend.place != place:
                continue
            # Of a long text it shows the beginning only, which others may share: the wire knows the rest.
            if text == shown or (text.startswith(shown) and on_wire <= {text}):
                return known
        return ""

    async def look(self) -> Evidence | None:
        """One look: where the worker stands now, or None when it is not at this gate."""
        if not await self.shut_when_sent():
            return None
        parked = await self._around.gates.parked(self._gate, [self._around.worker])
        if self.chooses:
            parked = [backend for backend in parked if self.statement_of(backend)]
        if not parked:
            return None
        backend = parked[0]
        rows = await self._around.view.rows_held_by(backend.xid)
        mine = [row for row in rows if self._around.ours(row.key)]
        point = self._point
        if point is Point.SNAPSHOT and mine:
            point = Point.CLAIMED  # a SELECT ... FOR UPDATE before this UPDATE has locked already
        held = f", holds row {mine[0].job}" if mine else ", holds no row of ours"
        key = mine[0].key if mine else None
        return Evidence(point, backend.pid, key, backend.told() + held, self.statement_of(backend))

    async def reached(self, within_seconds: float) -> Evidence:
        return await _look_until(self.look, within_seconds, f"worker {self._around.worker} to be {self._point}")

    async def release(self) -> None:
        if self._hold is not None:
            self._hold.disarm()
        await self._around.gates.open(self._gate, self._around.worker)

    async def sever(self) -> None:
        await self.release()


class ClaimedStop:
    """CLAIMED, for explicit transactions (on the wire, before the next message) and for single statements (in their COMMIT)."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._gate = GateStop(Point.CLAIMED, around, CLAIM_GATE)
        self._hold: Hold = around.proxy.hold_after_notice(self._wanted)

    def _wanted(self, notice: NoticeView) -> bool:
        return notice.change == "claim" and self._around.ours(notice.key)

    async def arm(self) -> None:
        await self._gate.arm()

    async def _look(self) -> Evidence | None:
        if not self._hold.hit.is_set():
            return await self._gate.look()
        session = self._hold.session
        backend = await self._around.view.backend(session.pid) if session else None
        if session is None or backend is None or backend.xid is None:
            return None
        rows = [row for row in await self._around.view.rows_held_by(backend.xid) if self._around.ours(row.key)]
        if not rows:
            return None
        return Evidence(Point.CLAIMED, session.pid, rows[0].key, f"{backend.told()}, holds row {rows[0].job}")

    async def reached(self, within_seconds: float) -> Evidence:
        return await _look_until(self._look, within_seconds, f"worker {self._around.worker} to have rows claimed")

    async def release(self) -> None:
        self._hold.release()
        await self._gate.release()

    async def sever(self) -> None:
        self._hold.sever()
        await self._gate.release()


class LostReplyStop:
    """COMMIT_LOST and RESULT_LOST: the transaction is durable, every byte of its reply is withheld."""

    def __init__(self, point: Point, around: Surroundings, kinds: frozenset[str]) -> None:
        self._point = point
        self._around = around
        self._kinds = kinds
        self._hold = around.proxy.lose_reply(self._wanted, self._candidate)

    def _wanted(self, notice: NoticeView) -> bool:
        return notice.change in self._kinds and self._around.ours(notice.key)

    def _candidate(self, request: RequestView) -> bool:
        return bool(self._kinds & set(request.changes))

    async def reached(self, within_seconds: float) -> Evidence:
        began = time.monotonic()
        await self._hold.reached(within_seconds)
        session = self._hold.session
        pid = session.pid if session is not None else 0
        left = max(1.0, within_seconds - (time.monotonic() - began))
        entry = await self._around.recorder.wait_for(
            lambda entry: (
                isinstance(entry.what, Moved)
                and entry.what.worker == self._around.worker
                and entry.what.change in self._kinds
                and entry.what.ours
                and pid in (0, entry.what.pid)
            ),
            within_seconds=left,
            reason=f"truth to show the {'/'.join(sorted(self._kinds))} of worker {self._around.worker} as committed",
        )
        moved = entry.what
        assert isinstance(moved, Moved)
        return Evidence(
            self._point,
            moved.pid,
            moved.key,
            f"transaction {moved.xid} of backend {moved.pid} is committed ({moved.change} of job {moved.job}),"
            " its reply is withheld from the worker",
        )

    async def release(self) -> None:
        self._hold.release()

    async def sever(self) -> None:
        self._hold.sever()


class SinkStop:
    """CALLING and CALLED: the handler's request stands at the sink."""

    def __init__(self, point: Point, around: Surroundings) -> None:
        self._point = point
        self._hold: SinkHold = around.sink.hold(point, worker=around.worker)

    async def reached(self, within_seconds: float) -> Evidence:
        call = await self._hold.reached(within_seconds)
        effect = "effect applied, no reply yet" if self._point is Point.CALLED else "no effect yet"
        return Evidence(self._point, 0, call.key, f"the sink holds call {call.call} for job {call.key!r}: {effect}")

    async def release(self) -> None:
        self._hold.release()

    async def sever(self) -> None:
        self._hold.release()


async def arm(point: Point, around: Surroundings, *, statements: Mapping[str, int] | None = None) -> Stop:
    """Arm a stop; the worker may be started afterwards.

    ``statements``: fingerprints of those in which it is to be parked at SNAPSHOT, with the number of the write in each;
    without them, those that claim, in the write that does.
    """
    match point:
        case Point.CLAIM_SENT:
            return RequestStop(point, around, frozenset({"claim"}))
        case Point.RESULT_SENT:
            return RequestStop(point, around, RESULTS)
        case Point.RENEWING:
            return RequestStop(point, around, frozenset({"renew"}))
        case Point.COMMIT_LOST:
            return LostReplyStop(point, around, frozenset({"claim"}))
        case Point.RESULT_LOST:
            return LostReplyStop(point, around, RESULTS)
        case Point.CALLING | Point.CALLED:
            return SinkStop(point, around)
        case Point.CLAIMED:
            claimed = ClaimedStop(around)
            await claimed.arm()
            return claimed
        case Point.SNAPSHOT:
            snapshot = GateStop(point, around, SNAPSHOT_GATE, _parked_in(statements, around))
            await snapshot.arm()
            return snapshot
        case Point.COMMITTING:
            committing = GateStop(point, around, CLAIM_GATE)
            await committing.arm()
            return committing


def _parked_in(statements: Mapping[str, int] | None, around: Surroundings) -> Callable[[RequestView], int] | None:
    if statements is not None:
        return lambda request: statements.get(request.fingerprint, 0)
    book = around.proxy.book
    if "claim" in book.learned():
        return lambda request: book.place(request.fingerprint, "claim") if "claim" in request.changes else 0
    return None  # nothing is known to claim: whatever writes the table first, and no word of which statement that is


async def _look_until(look: Callable[[], object], within_seconds: float, what: str) -> Evidence:
    deadline = time.monotonic() + within_seconds
    while True:
        seen = await look()  # type: ignore[misc]
        if isinstance(seen, Evidence):
            return seen
        if time.monotonic() > deadline:
            raise DeadlinePassed(f"waited {within_seconds:g} s for {what}; the server did not show it")
        await asyncio.sleep(_LOOK_SECONDS)


ALL_GATES = (SNAPSHOT_GATE, CLAIM_GATE, RENEW_GATE, RESULT_GATE)
