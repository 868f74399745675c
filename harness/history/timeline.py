"""Tells an entry in a short sentence for people, and picks the few of a play that matter for drawing it."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.contracts.verdict import Finding
from harness.document import Witness
from harness.history.events import (
    Answered,
    AnyEvent,
    Applied,
    Asked,
    Attempted,
    BackendEnded,
    Began,
    Blocked,
    Called,
    Ended,
    Enqueued,
    Entry,
    FaultHealed,
    FaultLanded,
    Final,
    Inconsistent,
    LeftOut,
    Moved,
    Noticed,
    OpenTransaction,
    Reached,
    Released,
    Row,
    Saw,
    SessionClosed,
    SessionOpened,
    Settled,
    Signalled,
    Stalled,
    TruthIncomplete,
    Waited,
    WorkerExited,
    WorkerStarted,
)
from harness.history.facts.takeovers import takeovers
from harness.history.story import Story

MOST_MOMENTS = 60
MOST_KEYS = 3
_SHORT = 160

# What to leave out first when there is too much to draw; what is not named here is noise beside a drawing.
_WEIGHT: dict[type[Any], int] = {
    Signalled: 9,
    FaultLanded: 9,
    FaultHealed: 9,
    Reached: 9,
    Released: 8,
    WorkerExited: 8,
    BackendEnded: 8,
    Moved: 8,
    Attempted: 7,
    Called: 7,
    Answered: 6,
    Asked: 6,
    Blocked: 6,
    OpenTransaction: 6,
    Saw: 5,
    LeftOut: 5,
    WorkerStarted: 5,
    Enqueued: 4,
    Waited: 4,
    Inconsistent: 4,
    TruthIncomplete: 4,
    Applied: 3,
    Stalled: 2,
}


def tell(entry: Entry) -> tuple[str, str]:
    """Who and what, in a few words: ("worker 1", "calls for job 'a'")."""
    event = entry.what
    return _TELL[type(event)](event)


def kind_of(event: AnyEvent) -> str:
    """The event's kind for drawing: a transition's change, "refused complete" for a write that moved no row, a signal's name."""
    match event:
        case Moved():
            return event.change
        case Attempted() if event.moved == 0:
            return f"refused {event.changes[0]}" if event.changes else "refused"
        case Signalled():
            return event.signal
    return str(type(event).__struct_config__.tag)


def witness(story: Story, entry: Entry) -> Witness:
    """An entry as the document has it."""
    event = entry.what
    who, text = tell(entry)
    row = event.new if isinstance(event, Moved) else None
    left: float | None = None
    if isinstance(event, Moved) and row is not None and row.lease_us is not None:
        left = round((row.lease_us - event.wall_us) / 1000, 1)
    began = story.entries[0].t if story.entries else 0
    key = getattr(event, "key", None)
    if key is None and isinstance(event, Attempted) and len(event.keys) == 1:
        key = event.keys[0]
    return Witness(
        n=entry.n,
        t_ms=round((story.happened_at(entry) - began) / 1e6, 3),
        who=who,
        text=text,
        kind=kind_of(event),
        worker=getattr(event, "worker", 0),
        key=key,
        state=row.state if row is not None else "",
        token=row.token if row is not None else getattr(event, "token", None),
        lease_left_ms=left,
    )


def moments(story: Story, findings: Sequence[Finding] = ()) -> list[Witness]:
    """The few entries that matter, in order: what proves the findings, and the lives of the jobs and workers around them."""
    proof = {n for finding in findings for n in finding.witness}
    keys = _keys(story, findings)
    chosen: list[tuple[int, int, Entry]] = []
    for entry in story.entries:
        weight = 10 if entry.n in proof else _weight(entry.what, keys)
        if weight:
            chosen.append((-weight, entry.n, entry))
    kept = sorted(chosen, key=lambda each: each[:2])[:MOST_MOMENTS]
    return sorted((witness(story, entry) for _, _, entry in kept), key=lambda each: (each.t_ms, each.n))


def _keys(story: Story, findings: Sequence[Finding]) -> set[str]:
    """The jobs that the drawing is about: those with findings, else taken over, else stopped at, else the first few."""
    for keys in (
        [finding.key for finding in findings],
        [job.key for job, _, _, _ in takeovers(story)],
        [stood.what.key for stood in story.reached],
        [key for key, job in story.jobs.items() if job.ours],
    ):
        found = list(dict.fromkeys(key for key in keys if key is not None))
        if found:
            return set(found[:MOST_KEYS])
    return set()


def _weight(event: AnyEvent, keys: set[str]) -> int:
    weight = _WEIGHT.get(type(event), 0)
    match event:
        case Moved():
            weight = 4 if event.change in {"renew", "other"} else weight
            return weight if event.key in keys else 0
        case Attempted():
            named = not event.keys or bool(keys & set(event.keys))
            claims = event.changes == ("claim",)  # an empty poll
            return weight if event.moved == 0 and named and not claims else 0
        case Enqueued() | Called() | Applied() | Answered() | Asked() | OpenTransaction():
            return weight if event.key in keys else 0
        case Stalled() | Waited():
            return weight
    return weight


def _worker(number: int) -> str:
    return f"worker {number}" if number else "harness"


def _row(row: Row | None) -> str:
    if row is None:
        return "no row"
    token = f", token {row.token}" if row.token is not None else ""
    owner = f", owner {row.owner}" if row.owner is not None else ""
    return f"{row.state}{owner}{token}"


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHORT else flat[: _SHORT - 1] + "…"


def _moved(event: Moved) -> tuple[str, str]:
    names = {
        "claim": "is granted",
        "renew": "renews",
        "complete": "completes",
        "fail": "fails",
        "release": "gives back",
        "other": "writes other columns of",
    }
    who = f"worker {event.worker}" if event.worker else "database"
    what = names.get(event.change)
    if not event.worker or what is None:
        return who, f"{event.change} of job {event.key!r}: {_row(event.old)} → {_row(event.new)}"
    return who, f"{what} job {event.key!r}: {_row(event.old)} → {_row(event.new)}"


def _attempted(event: Attempted) -> tuple[str, str]:
    what = "/".join(event.changes)
    named = ", ".join(repr(key) for key in event.keys) or ", ".join(event.jobs)
    about = f" of job {named}" if named else ""
    if event.sqlstate is not None:
        return _worker(event.worker), f"{what}{about} is refused with error {event.sqlstate}"
    if event.moved == 0:
        return _worker(event.worker), f"{what}{about} moves no row"
    return _worker(event.worker), f"{what}{about} moves {event.moved} row(s)"


def _answered(event: Answered) -> tuple[str, str]:
    why = f" ({event.why})" if event.why else ""
    if event.status is None:
        return "sink", f"the call of worker {event.worker} for job {event.key!r} breaks off without a reply{why}"
    return "sink", f"answers {event.status} to worker {event.worker} for job {event.key!r}{why}"


def _applied(event: Applied) -> tuple[str, str]:
    outcome = {
        "effect": "applies the effect",
        "known": "knows the operation key already, and applies nothing",
        "stale": "refuses an older token",
    }.get(event.outcome, event.outcome)
    return "sink", f"{outcome} for job {event.key!r} (call {event.call} of worker {event.worker})"


def _called(event: Called) -> tuple[str, str]:
    operation = f", operation key {event.operation_key!r}" if event.operation_key is not None else ""
    token = f", token {event.token}" if event.token is not None else ""
    return _worker(event.worker), f"calls for job {event.key!r}{operation}{token}"


def _open(event: OpenTransaction) -> tuple[str, str]:
    on_row = " on that job's row" if event.on_row else ""
    since = " since before its call" if event.older_than_call else ""
    return _worker(event.worker), f"has a transaction open{on_row}{since} while it calls for job {event.key!r}"


def _reached(event: Reached) -> tuple[str, str]:
    job = f" with job {event.key!r}" if event.key is not None else ""
    return _worker(event.worker), f"stands at {event.point}{job}: {_cut(event.proof)}"


def _ended(event: Ended) -> tuple[str, str]:
    return "harness", "the play ends" if event.trouble is None else f"the play ends in trouble: {_cut(event.trouble)}"


def _waited(event: Waited) -> tuple[str, str]:
    met = "it came" if event.met else "it did not come"
    return "harness", f"waited {event.seconds:g} s for {event.what} with {event.idle_workers} idle worker(s): {met}"


def _stalled(event: Stalled) -> tuple[str, str]:
    return "harness", f"the machine stalls for {max(event.loop_lag_ms, event.select_one_ms):.0f} ms"


def _exited(event: WorkerExited) -> tuple[str, str]:
    how = f"is killed by signal {-event.code}" if event.code < 0 else f"exits with code {event.code}"
    return _worker(event.worker), how


def _final(event: Final) -> tuple[str, str]:
    return "database", f"job {event.key!r} at the end: {_row(event.row)}"


def _asked(event: Asked) -> tuple[str, str]:
    return _worker(event.worker), f"asks about job {event.key!r}: {'done' if event.found else 'absent'}"


_TELL: dict[type[Any], Callable[[Any], tuple[str, str]]] = {
    Began: lambda event: ("harness", f"the play {event.scenario} begins"),
    Ended: _ended,
    Enqueued: lambda event: ("harness", f"enqueues job {event.key!r}"),
    Moved: _moved,
    Noticed: lambda event: (_worker(event.worker), f"{event.change} of job {event.key!r} passes the wire, not committed yet"),
    Settled: lambda event: (_worker(event.worker), "its transaction has ended"),
    Attempted: _attempted,
    SessionOpened: lambda event: (_worker(event.worker), f"connects, backend {event.pid}"),
    SessionClosed: lambda event: (_worker(event.worker), f"its connection is closed by the {event.by}"),
    Called: _called,
    Applied: _applied,
    Answered: _answered,
    Asked: _asked,
    WorkerStarted: lambda event: (_worker(event.worker), f"starts (process {event.pid}, life {event.incarnation})"),
    WorkerExited: _exited,
    Signalled: lambda event: (_worker(event.worker), f"receives {event.signal}"),
    FaultLanded: lambda event: ("harness", f"fault '{event.fault}' lands: {_cut(event.evidence)}"),
    FaultHealed: lambda event: ("harness", f"fault '{event.fault}' is over"),
    Reached: _reached,
    Released: lambda event: (_worker(event.worker), f"may go on from {event.point}"),
    BackendEnded: lambda event: ("database", f"backend {event.pid} of worker {event.worker} ends, by {event.by}"),
    Blocked: lambda event: (_worker(event.worker), f"waits behind backend {event.by_pid} ({event.wait}): {_cut(event.statement)}"),
    OpenTransaction: _open,
    Stalled: _stalled,
    LeftOut: lambda event: ("harness", f"left out: {event.what}, because {_cut(event.why)}"),
    Saw: lambda event: (_worker(event.worker), f"{event.what}: {_cut(event.evidence)}"),
    Final: _final,
    TruthIncomplete: lambda event: ("harness", f"truth is incomplete: {_cut(event.why)}"),
    Inconsistent: lambda event: ("database", f"an inconsistent row: {_cut(event.row)}"),
    Waited: _waited,
}  # fmt: skip
