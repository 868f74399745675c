"""Every kind of thing that a history can say. One process records them all, in one order, on one monotonic clock.

``worker`` is a worker's number (1, 2, ...); 0 means no worker of ours. ``session`` numbers a wire connection, unique in a
play. Times named ``*_us`` are the database's clock, microseconds since the Unix epoch; they are compared with each other
and never with ``Entry.t``, which is the harness's monotonic clock.
"""

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """Base of all events. The class's name in lower case is the ``kind`` in the file."""


class SubjectFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What judging needs to know of a subject; stored with the play so that it can be judged again without its folder."""

    name: str
    guarantee: str
    order: str
    sink: str
    recovery: str
    restarts: str
    clock: str = "database"
    lease_seconds: float | None = None
    heartbeat_seconds: float | None = None
    takeover_within_seconds: float | None = None
    max_attempts: int | None = None
    has_owner: bool = False
    has_token: bool = False
    token_increasing: bool = False
    has_lease: bool = False
    has_attempts: bool = False


class Began(Event, frozen=True, tag="began"):
    """A play starts."""

    scenario: str
    subject: SubjectFacts
    must_hold: tuple[str, ...] = ()
    must_happen: tuple[str, ...] = ()
    excuses: tuple[str, ...] = ()
    seed: int = 0


class Ended(Event, frozen=True, tag="ended"):
    """A play is over. ``trouble`` is set when the harness or the subject could not go through with it."""

    trouble: str | None = None
    whose: str = ""  # "subject", "harness" or "" when there was no trouble


class Enqueued(Event, frozen=True, tag="enqueued"):
    """An enqueue of this key was acknowledged."""

    key: str
    priority: int | None = None
    group: str | None = None


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mapped columns of one job row."""

    state: str
    owner: str | None = None
    token: str | None = None
    lease_us: int | None = None
    attempts: int | None = None
    run_at_us: int | None = None


class Moved(Event, frozen=True, tag="moved"):
    """A committed row transition, read from truth. ``seq`` orders the transitions of one job by commit.

    ``Entry.t`` is when the harness *read* it. ``change`` is a ``Change``; the net effect per (job, xid) is one Moved.
    """

    seq: int
    xid: int
    pid: int
    worker: int
    change: str
    job: str
    key: str | None
    old: Row | None
    new: Row | None
    transaction_us: int
    statement_us: int
    wall_us: int
    app: str = ""
    ours: bool = True  # False: a key we did not enqueue
    deleted: bool = False  # the row is gone; ``new`` then has the state that its deletion means


class Noticed(Event, frozen=True, tag="noticed"):
    """The truth trigger's notice passed the proxy: provisional until a Moved of the same ``seq`` exists."""

    session: int
    worker: int
    pid: int
    xid: int
    seq: int
    change: str
    key: str | None
    statement: str = ""
    place: int = 1  # which write of its message made it


class Settled(Event, frozen=True, tag="settled"):
    """The server said ReadyForQuery outside a transaction on a session that had notices: transactions up to here ended."""

    session: int
    worker: int
    pid: int


class Attempted(Event, frozen=True, tag="attempted"):
    """A statement that the probe tied to a change was answered by the server, whether or not it moved a row.

    ``changes`` are the kinds its statement is known for. ``moved`` counts the notices within it. ``keys`` are the keys of
    ours found among its parameters or literals (may be empty when it names the job by id: then ``jobs`` has ids).
    """

    session: int
    worker: int
    pid: int
    changes: tuple[str, ...]
    statement: str
    moved: int
    tag: str = ""
    sqlstate: str | None = None
    keys: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


class SessionOpened(Event, frozen=True, tag="session opened"):
    """A worker's connection is ready; ``pid`` is its backend."""

    session: int
    worker: int
    pid: int
    app: str = ""


class SessionClosed(Event, frozen=True, tag="session closed"):
    """A worker's connection is gone; ``by`` is "client", "server" or "harness"."""

    session: int
    worker: int
    pid: int
    by: str


class Called(Event, frozen=True, tag="called"):
    """A handler's request reached the sink."""

    call: int
    worker: int
    key: str
    operation_key: str | None = None
    token: str | None = None


class Applied(Event, frozen=True, tag="applied"):
    """The sink's atomic decision on a call. ``outcome``: "effect", "known" (deduplicated) or "stale" (older token)."""

    call: int
    worker: int
    key: str
    outcome: str


class Answered(Event, frozen=True, tag="answered"):
    """The sink's reply to a call; ``status`` None means the connection broke before a reply. ``why`` when not 2xx."""

    call: int
    worker: int
    key: str
    status: int | None
    why: str = ""


class Asked(Event, frozen=True, tag="asked"):
    """A worker asked the sink about a key (GET)."""

    worker: int
    key: str
    found: bool


class WorkerStarted(Event, frozen=True, tag="worker started"):
    """A worker process was started; ``incarnation`` counts from 1 per worker number."""

    worker: int
    pid: int
    incarnation: int


class WorkerExited(Event, frozen=True, tag="worker exited"):
    """A worker process is gone. ``code`` is negative for a signal, as in ``subprocess``."""

    worker: int
    pid: int
    incarnation: int
    code: int


class Signalled(Event, frozen=True, tag="signalled"):
    """The harness sent a signal to a worker's whole process group. ``signal`` is its name, "SIGKILL"."""

    worker: int
    signal: str


class FaultLanded(Event, frozen=True, tag="fault landed"):
    """A fault took effect; ``evidence`` is what the server, the process table or the wire showed."""

    fault: str
    evidence: str
    worker: int = 0
    key: str | None = None


class FaultHealed(Event, frozen=True, tag="fault healed"):
    """A fault is over."""

    fault: str
    worker: int = 0


class Reached(Event, frozen=True, tag="reached"):
    """A worker stands at a point. ``proof`` is what the server (or the sink) showed at that moment.

    ``statement`` is the fingerprint of the statement that the server showed it in; "" where that was not asked for.
    """

    point: str
    worker: int
    pid: int
    key: str | None
    proof: str
    statement: str = ""


class Released(Event, frozen=True, tag="released"):
    """A worker may go on from a point."""

    point: str
    worker: int


class BackendEnded(Event, frozen=True, tag="backend ended"):
    """The harness ended a backend, or saw that it had ended by itself."""

    worker: int
    pid: int
    by: str  # "harness" or "itself"


class Blocked(Event, frozen=True, tag="blocked"):
    """A worker's backend was seen waiting behind a row or table that the scenario holds."""

    worker: int
    pid: int
    by_pid: int
    wait: str
    statement: str


class OpenTransaction(Event, frozen=True, tag="open transaction"):
    """While ``call`` was at the sink, a backend of the same worker had a transaction open.

    ``on_row`` says that it is the in-progress writer or locker of that job's row; ``older_than_call`` that it began before
    the call. ``at_end`` that this was seen as the call ended.
    """

    call: int
    worker: int
    pid: int
    key: str
    on_row: bool
    older_than_call: bool
    at_end: bool
    state: str = ""


class Stalled(Event, frozen=True, tag="stalled"):
    """The machine, not the subject, was slow: the event loop or ``select 1`` took this long."""

    loop_lag_ms: float = 0
    select_one_ms: float = 0


class Saw(Event, frozen=True, tag="saw"):
    """A scenario's own observation that facts may rest on: ``what`` happened, shown by ``evidence``."""

    what: str
    evidence: str
    worker: int = 0
    key: str | None = None


class LeftOut(Event, frozen=True, tag="left out"):
    """A part of the play was not played. ``unjudged`` names the invariants that nothing else in the play could break."""

    what: str
    why: str
    unjudged: tuple[str, ...] = ()


class Final(Event, frozen=True, tag="final"):
    """The last snapshot of one job's row, after every backend of the subject has ended. ``row`` None: no such row."""

    key: str
    job: str | None
    row: Row | None


class TruthIncomplete(Event, frozen=True, tag="truth incomplete"):
    """The final snapshot disagrees with truth (TRUNCATE, a disabled trigger): nothing about this play can be judged."""

    why: str


class Inconsistent(Event, frozen=True, tag="inconsistent"):
    """A row that the subject's own consistency query returned at a quiet moment."""

    row: str


class Waited(Event, frozen=True, tag="waited"):
    """The harness gave the subject a stated time with an idle worker, so that bounds on takeover and loss may be judged.

    ``idle_workers`` live workers had a free slot all along. ``key`` names the one job that was awaited, free to be claimed.
    """

    what: str
    seconds: float
    idle_workers: int
    met: bool
    key: str | None = None


AnyEvent = (
    Began
    | Ended
    | Enqueued
    | Moved
    | Noticed
    | Settled
    | Attempted
    | SessionOpened
    | SessionClosed
    | Called
    | Applied
    | Answered
    | Asked
    | WorkerStarted
    | WorkerExited
    | Signalled
    | FaultLanded
    | FaultHealed
    | Reached
    | Released
    | BackendEnded
    | Blocked
    | OpenTransaction
    | Stalled
    | Saw
    | LeftOut
    | Final
    | TruthIncomplete
    | Inconsistent
    | Waited
)


class Entry(msgspec.Struct, frozen=True):
    """One line of ``history.jsonl``: order ``n`` (from 1, dense), nanoseconds ``t`` since the run began, the play, the event."""

    n: int
    t: int
    play: str
    what: AnyEvent
