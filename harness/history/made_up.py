"""Tells a history that never happened: for goldens whose verdict is known beforehand, and for measuring how fast we judge.

Everything is recorded as the harness records it: truth is read after the fact, notices pass before the commit, and the
database's clock runs beside the recorder's. Nothing here is used while a subject is being driven.
"""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.history.events import (
    Answered,
    AnyEvent,
    Applied,
    Asked,
    Attempted,
    Began,
    Called,
    Ended,
    Enqueued,
    Entry,
    Final,
    Moved,
    Noticed,
    Reached,
    Released,
    Row,
    SessionOpened,
    Settled,
    Signalled,
    SubjectFacts,
    Waited,
    WorkerExited,
    WorkerStarted,
)

SUBJECT = SubjectFacts(
    name="made-up",
    guarantee="at-least-once",
    order="none",
    sink="keyed",
    recovery="replay",
    restarts="never",
    lease_seconds=2.0,
    takeover_within_seconds=4.0,
    max_attempts=3,
    has_owner=True,
    has_token=True,
    token_increasing=True,
    has_lease=True,
    has_attempts=True,
)
EPOCH_US = 1_800_000_000_000_000
LEASE_MS = 2000
CLAIM_SQL = "update jobs set state = ? where id = ?"


@dataclass
class History:
    """Writes entries one after another. Each method is one thing that happens; time passes by 1 ms per entry, or by ``wait``."""

    play: str = "made-up"
    subject: SubjectFacts = SUBJECT
    must_hold: tuple[str, ...] = ()
    must_happen: tuple[str, ...] = ()
    excuses: tuple[str, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    now_ms: int = 0
    rows: dict[str, Row | None] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _lives: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.say(Began(self.play, self.subject, self.must_hold, self.must_happen, self.excuses))

    def say(self, event: AnyEvent) -> int:
        """Record any event; returns its number."""
        self.now_ms += 1
        self.entries.append(Entry(len(self.entries) + 1, self.now_ms * 1_000_000, self.play, event))
        return len(self.entries)

    def wait(self, ms: int) -> None:
        """Let time pass on both clocks."""
        self.now_ms += ms

    def number(self, of: str) -> int:
        """The next number of its kind: seq, xid, call."""
        self._numbers[of] = self._numbers.get(of, 0) + 1
        return self._numbers[of]

    @property
    def clock_us(self) -> int:
        """The database's clock."""
        return EPOCH_US + self.now_ms * 1000

    # Workers.

    def start(self, *workers: int) -> None:
        """Start worker processes, each with one connection."""
        for worker in workers:
            self._lives[worker] = self._lives.get(worker, 0) + 1
            self.say(WorkerStarted(worker, 1000 + worker, self._lives[worker]))
            self.say(SessionOpened(self.session(worker), worker, self.pid(worker)))

    def session(self, worker: int) -> int:
        return worker * 100 + self._lives.get(worker, 0)

    def pid(self, worker: int) -> int:
        return worker * 1000 + self._lives.get(worker, 0)

    def signal(self, worker: int, signal: str) -> int:
        return self.say(Signalled(worker, signal))

    def kill(self, worker: int) -> None:
        """SIGKILL, and the end of the process."""
        self.signal(worker, "SIGKILL")
        self.say(WorkerExited(worker, 1000 + worker, self._lives.get(worker, 1), -9))

    def exits(self, worker: int, code: int = 0) -> int:
        """Its process ends by itself."""
        return self.say(WorkerExited(worker, 1000 + worker, self._lives.get(worker, 1), code))

    def reach(self, worker: int, point: str, key: str | None = None, proof: str = "seen", statement: str = "") -> int:
        return self.say(Reached(point, worker, self.pid(worker), key, proof, statement))

    def let_go(self, worker: int, point: str) -> int:
        return self.say(Released(point, worker))

    # Rows.

    def enqueue(
        self, *keys: str, priority: int | None = None, group: str | None = None, run_at_us: int | None = None
    ) -> None:
        """Enqueue jobs, acknowledged one by one."""
        for key in keys:
            self.move(0, key, "enqueue", Row("pending", run_at_us=run_at_us))
            self.say(Enqueued(key, priority, group))

    def move(
        self,
        worker: int,
        key: str,
        change: str,
        new: Row | None,
        *,
        wire: bool = True,
        settles: bool = True,
        read: bool = True,
        session: int | None = None,
        pid: int | None = None,
        took_ms: int = 0,
        xid: int | None = None,
    ) -> int:
        """A transition; returns its ``seq``. ``took_ms`` is how long its transaction had run when the row changed.

        ``wire``: its notice passes. ``settles``: the server says that the transaction ended. ``read``: it commits, and truth
        shows it at once (otherwise show it later with ``show``, or never).
        """
        seq = self.number("seq")
        xid = xid or 500 + self.number("xid")
        pid = pid if pid is not None else self.pid(worker)
        session = session if session is not None else self.session(worker)
        moved = Moved(
            seq, xid, pid, worker, change, f"id-{key}", key, self.rows.get(key), new,
            self.clock_us - took_ms * 1000, self.clock_us, self.clock_us,
        )  # fmt: skip
        if worker and wire:
            self.say(Noticed(session, worker, pid, xid, seq, change, key, CLAIM_SQL if change == "claim" else change))
        if worker and wire and settles:
            self.say(Settled(session, worker, pid))
            self.say(Attempted(session, worker, pid, (change,), change, 1, keys=(key,)))
        if read:
            self.show(moved)
        self._unread = moved
        return seq

    def show(self, moved: Moved | None = None) -> int:
        """Truth shows a transition: the given one, or the last that was not read."""
        moved = moved or self._unread
        assert moved.key is not None
        self.rows[moved.key] = moved.new
        return self.say(moved)

    def settle(self, worker: int) -> int:
        return self.say(Settled(self.session(worker), worker, self.pid(worker)))

    def row(self, key: str) -> Row:
        row = self.rows.get(key)
        return row if row is not None else Row("pending")

    def claim(
        self,
        worker: int,
        key: str,
        *,
        token: str | None = "",
        lease_ms: int | None = LEASE_MS,
        wire: bool = True,
        settles: bool = True,
        read: bool = True,
        took_ms: int = 0,
        xid: int | None = None,
    ) -> int:
        """A grant; the token grows by one unless it is given."""
        row = self.row(key)
        if token == "":
            token = str(int(row.token or "0") + 1)
        lease = self.clock_us + lease_ms * 1000 if lease_ms is not None else None
        new = Row("running", f"w{worker}", token, lease, (row.attempts or 0) + 1, row.run_at_us)
        return self.move(
            worker, key, "claim", new, wire=wire, settles=settles, read=read, took_ms=took_ms, xid=xid
        )  # fmt: skip

    def change(self, worker: int, key: str, change: str, state: str, **how: bool) -> int:
        """Any other accepted write: the row moves to ``state``."""
        row = self.row(key)
        lease = self.clock_us + LEASE_MS * 1000 if change == "renew" else row.lease_us
        return self.move(worker, key, change, msgspec.structs.replace(row, state=state, lease_us=lease), **how)

    def complete(self, worker: int, key: str, **how: bool) -> int:
        return self.change(worker, key, "complete", "done", **how)

    def renew(self, worker: int, key: str, **how: bool) -> int:
        return self.change(worker, key, "renew", "running", **how)

    def fail(self, worker: int, key: str, state: str = "retry", **how: bool) -> int:
        return self.change(worker, key, "fail", state, **how)

    def release(self, worker: int, key: str, **how: bool) -> int:
        return self.change(worker, key, "release", "pending", **how)

    def refused(self, worker: int, key: str, change: str) -> int:
        """A write that moved no row."""
        return self.say(
            Attempted(self.session(worker), worker, self.pid(worker), (change,), change, 0, "UPDATE 0", keys=(key,))
        )

    def looks(self, worker: int) -> int:
        """A claim that found nothing."""
        return self.say(Attempted(self.session(worker), worker, self.pid(worker), ("claim",), CLAIM_SQL, 0, "UPDATE 0"))

    # The outside world.

    def call(
        self,
        worker: int,
        key: str,
        status: int | None = 200,
        *,
        outcome: str = "",
        operation_key: str | None = "",
        answered: bool = True,
    ) -> int:
        """A call, what the sink made of it, and its reply; returns the call's number."""
        call = self.number("call")
        token = self.row(key).token
        self.say(Called(call, worker, key, f"op-{key}" if operation_key == "" else operation_key, token))
        if not outcome and status is not None and status < 300:
            outcome = "effect" if f"effect {key}" not in self._numbers or self.subject.sink == "naive" else "known"
        if outcome:
            self.say(Applied(call, worker, key, outcome))
            if outcome == "effect":
                self.number(f"effect {key}")
        if answered:
            self.say(Answered(call, worker, key, status, "" if status is not None else "the connection broke"))
        return call

    def ask(self, worker: int, key: str, *, found: bool) -> int:
        return self.say(Asked(worker, key, found))

    # The end.

    def run(self, worker: int, *keys: str) -> None:
        """The calm story of a job: granted, called, completed."""
        for key in keys:
            self.claim(worker, key)
            self.call(worker, key)
            self.complete(worker, key)

    def waited(self, seconds: float, *, met: bool, idle: int = 1, key: str | None = None) -> int:
        """Give the subject this time."""
        self.wait(round(seconds * 1000))
        return self.say(Waited("all jobs to end" if key is None else f"job {key!r}", seconds, idle, met, key))

    def end(self, trouble: str | None = None, whose: str = "") -> list[Entry]:
        """The final snapshot and the play's end."""
        for key, row in self.rows.items():
            self.say(Final(key, f"id-{key}", row))
        self.say(Ended(trouble, whose))
        return self.entries


def write(path: Path, entries: list[Entry]) -> None:
    """Store entries as the recorder would."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for entry in entries:
            file.write(encode(entry) + b"\n")
