"""Tells one schedule as a story: each move with what came of it, in time order, and why it is wrong."""

from collections.abc import Iterator

from harness.explore.case import Made, Played
from harness.explore.schedule import Kind
from harness.history.events import (
    Answered,
    Applied,
    Asked,
    Attempted,
    Called,
    Entry,
    FaultLanded,
    Moved,
    Noticed,
    WorkerExited,
)
from harness.history.timeline import tell

_TOLD = (Called, Applied, Answered, Asked, FaultLanded, WorkerExited)
_WIDTH = 112


def story(played: Played) -> list[str]:
    """Lines: the moves, numbered, with what the database and the outside say; entries that prove a finding are starred."""
    proof = {n for finding in played.judged.findings for n in finding.witness}
    moved = {entry.what.seq: entry for entry in played.entries if isinstance(entry.what, Moved)}
    lines: list[str] = []
    for number, made in enumerate(played.made, 1):
        head = f"{number:>3}. {made.move}  {_who(made)}"
        told = list(_told(played.entries[made.first : made.last], moved, proof))
        if not told:
            told = [("", _cut(made.what))]
        for star, text in told:
            lines.append(f"{star or ' '} {head:<18}{text}")
            head = ""
    return lines


def _who(made: Made) -> str:
    return {Kind.EXPIRE: "operator"}.get(made.move.kind, f"worker {made.move.number}")


def _told(entries: tuple[Entry, ...], moved: dict[int, Entry], proof: set[int]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        event = entry.what
        shown = entry
        if isinstance(event, Noticed):
            if event.seq not in moved:
                yield "", f"{event.change} of job {event.key!r}, which is rolled back later"
                continue
            shown = moved[event.seq]
        elif isinstance(event, Attempted):
            if event.moved or (event.changes == ("claim",) and not event.sqlstate):
                if not event.moved:
                    yield ("*" if entry.n in proof else ""), "looks for a job and finds none"
                continue
        elif not isinstance(event, _TOLD):
            continue
        who, text = tell(shown)
        star = "*" if proof & {entry.n, shown.n} else ""
        yield star, _cut(text if who.startswith("worker") else f"{who}: {text}")


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
