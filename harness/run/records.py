"""The four records of the acceptance report, kept apart: each says what it proves, and what it does not.

They are kept apart because each is easily taken for another: a queue that skips locked rows may still lose a job, one that
reclaims may still obey a stale worker, and none of the three says how long a backlog takes to drain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts.verdict import Verdict
from harness.document import LoadDoc, PlayDoc, RecordDoc, measure

NOT_RUN = "not run"


@dataclass(frozen=True)
class _Kind:
    """One record: ``feeds`` is the value of ``PlayDoc.record`` of its plays, None when no play can feed it."""

    name: str
    feeds: str | None
    proves: str
    does_not_prove: str


_KINDS = (
    _Kind(
        "two-session skip",
        "skip",
        "While one session held a job's row locked in an open transaction, another claimed a different job at once, on real "
        "connections; what the first had locked was claimed after its rollback, by one worker only.",
        "Nothing about speed: no CPU, disk or connection limit was reached. Nothing about a worker that dies or stalls after "
        "its claim is committed, and nothing about table-level locks, which SKIP LOCKED does not skip.",
    ),
    _Kind(
        "reclaim after interruption",
        "reclaim",
        "A worker was interrupted at a point that the server itself confirmed; its jobs were taken over by another worker "
        "within the time the subject states, and every acknowledged job ended.",
        "Not that the first worker had stopped: a lease's end never proves that. Not that a takeover is fast under load, nor "
        "that a machine, a disk or a whole database that is lost is survived.",
    ),
    _Kind(
        "stale-token refusal",
        "stale-token",
        "A worker that had lost its job to another tried to write its result, was refused or abstained, and overwrote nothing.",
        "Nothing about the outside world: only the sink can refuse a late call, and only if it checks the operation key or "
        "the token. Nothing about writes that go to the table by another way than the probed statements.",
    ),
    _Kind(
        "net drain",
        None,
        "How long a backlog takes to drain while new jobs keep arriving, at a stated job mix and number of slots.",
        "Nothing here: no load was applied in this run. The protocol records above contain no rate, no CPU and no disk "
        "figure, so the size of a machine must not be concluded from them.",
    ),
)


LOAD_PLAY = "load"
PROTOCOL_RECORDS = tuple(kind.feeds for kind in _KINDS if kind.feeds is not None)
_NOT_PROVEN_BY_LOAD = (
    "Nothing about the protocol: no fault was aimed at a claim, a commit or a token. Nothing about another job mix, number of "
    "slots, machine or disk than those stated here, nor about an outage that loses data."
)


def records(plays: Sequence[PlayDoc], load: LoadDoc | None = None) -> tuple[RecordDoc, ...]:
    """All four, always, in the same order; one that no play fed is "not run"."""
    found = [
        _record(kind, [play for play in plays if kind.feeds is not None and play.record == kind.feeds])
        for kind in _KINDS
    ]
    if load is not None:
        found[-1] = _net_drain([play for play in plays if play.scenario == LOAD_PLAY], load)
    return tuple(found)


def protocol_was_proven(plays: Sequence[PlayDoc]) -> bool:
    """Whether every play held, and each record but the net drain has one: a part of a gate is no gate."""
    fed = {play.record for play in plays if play.verdict == Verdict.PASS}
    return Verdict.worst(Verdict(play.verdict) for play in plays) is Verdict.PASS and fed.issuperset(PROTOCOL_RECORDS)


def _net_drain(plays: Sequence[PlayDoc], load: LoadDoc) -> RecordDoc:
    mix = ", ".join(f"{name} {value}" for name, value in load.setting.items())
    rows = [{"what": one.name, "reads": one.reads, "meaning": one.told} for one in load.estimates]
    verdict = str(Verdict.worst(Verdict(play.verdict) for play in plays)) if plays else NOT_RUN
    return RecordDoc(
        _KINDS[-1].name, verdict, f"{_KINDS[-1].proves} Here: {mix}.", _NOT_PROVEN_BY_LOAD, rows=tuple(rows)
    )


def _record(kind: _Kind, plays: Sequence[PlayDoc]) -> RecordDoc:
    verdict = Verdict.worst(map(_verdict, plays)) if plays else None
    why = sorted({_beside(play) for play in plays} - {""}) if verdict is Verdict.INCONCLUSIVE else []
    shown = str(verdict) if verdict is not None else NOT_RUN
    return RecordDoc(kind.name, shown, kind.proves, kind.does_not_prove, "; ".join(why), tuple(map(_row, plays)))


def _verdict(play: PlayDoc) -> Verdict:
    """What the play says of its record: what it failed by beside its story neither proves the record nor breaks it."""
    return Verdict.INCONCLUSIVE if _beside(play) else Verdict(play.verdict)


def _beside(play: PlayDoc) -> str:
    """Why a play that failed says nothing of its record, or an empty string. An older document names no invariants."""
    broken = {finding.invariant for finding in play.findings}
    if play.verdict != Verdict.FAIL or not broken or not play.must_hold or not broken.isdisjoint(play.must_hold):
        return ""
    return f"its scenario failed for another reason ({', '.join(sorted(broken))})"


def _row(play: PlayDoc) -> dict[str, str]:
    measured = "; ".join(" ".join(measure(name, value)) for name, value in sorted(play.figures.items()))
    happened = "; ".join(fact.sentence for fact in play.facts if fact.happened)
    return {
        "scenario": play.title + (f" ({play.repeat})" if play.repeat > 1 else ""),
        "verdict": str(_verdict(play)),
        "what happened": _beside(play) or happened or play.reason,
        "measured": measured or "—",
    }
