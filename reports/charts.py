"""Where things stand in a drawing. Pure geometry of a document's moments; the templates turn it into SVG.

Time flows down in ranks: each moment gets a row, however close to the last, and a long silence is a labelled gap. So ten
moments within a millisecond read as well as two that are seconds apart. Beside each worker's own belief that it owns the
job stands what the row said: where a worker still believes and the row says otherwise, the belief is marked mistaken.
"""

import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.contracts.subject import Change, State
from harness.document import PlayDoc, Witness
from reports import words

WIDTH = 1040
_TOP = 46
_TIME_X = 78
_FIRST_LANE_X = 112
_ROW_HEIGHT, _LINE_HEIGHT, _GAP_HEIGHT = 28, 17, 26
_SILENCE_MS = 400
_MOST_ROWS = 40
_CHARACTER_WIDTH = 6.9  # a safe average of a 13 px system font
_BOLD_SHARE = 0.88  # of the characters that fit, when they are bold

_TRANSITIONS = {change.value for change in Change}
_ENDS_A_HOLD = {Change.COMPLETE.value, Change.FAIL.value, Change.RELEASE.value, Change.RETIRE.value}
_LEARNS_OF_LOSS = {f"refused {change}" for change in Change if change is not Change.CLAIM}
_GONE = {"SIGKILL", "worker exited"}


@dataclass(frozen=True)
class Lane:
    """A column. ``kind`` is "worker", "row", "sink" or "faults"; ``hue`` numbers a worker's colour from 1."""

    kind: str
    name: str
    x: float
    hue: int = 0


@dataclass(frozen=True)
class Moment:
    """A row: when, who, what; a mark in its lane, and an arrow to another lane when one acts on another."""

    y: float
    top: float
    height: float
    time: str
    who: str
    lines: tuple[str, ...]
    x: float
    hue: int
    shape: str  # "dot", "cross" or "diamond"
    arrow_x: float | None
    proof: bool  # one of the finding's witnesses


@dataclass(frozen=True)
class Bar:
    """A stretch of time in a lane. ``kind``: "belief", "mistaken", "lease" or a state of the row."""

    kind: str
    x: float
    top: float
    bottom: float
    hue: int
    label: str = ""
    open_ended: bool = False


@dataclass(frozen=True)
class Gap:
    """A note between two rows: silence, or moments left out."""

    y: float
    text: str


@dataclass(frozen=True)
class Timeline:
    """One drawing, ready for the template."""

    height: float
    text_x: float
    lanes: tuple[Lane, ...]
    moments: tuple[Moment, ...]
    bars: tuple[Bar, ...]
    gaps: tuple[Gap, ...]
    job: str
    description: str
    kinds: frozenset[str]  # of the bars, for the legend


@dataclass(frozen=True)
class Cell:
    """One play in the strip of verdicts."""

    x: float
    width: float
    verdict: str
    title: str


def strip(plays: Sequence[PlayDoc]) -> tuple[Cell, ...]:
    """A cell for each play, worst first, together ``WIDTH`` wide."""
    step = WIDTH / max(len(plays), 1)
    gap = min(3.0, step * 0.15)
    return tuple(
        Cell(round(place * step, 2), round(step - gap, 2), play.verdict, f"{words.label(play)}: {play.verdict}")
        for place, play in enumerate(words.worst_first(plays))
    )


def timeline(moments: Sequence[Witness], proofs: Iterable[Witness] = (), key: str | None = None) -> Timeline | None:
    """Draw these moments; ``proofs`` stand out and are drawn even when ``moments`` lacks them. None: nothing to draw.

    ``key`` is the job whose row is drawn, by default the one with most to tell.
    """
    proven = {proof.n for proof in proofs}
    known = {moment.n for moment in moments}
    whole = sorted((*moments, *(proof for proof in proofs if proof.n not in known)), key=lambda moment: moment.n)
    if not whole:
        return None
    job = key if key is not None else _most_told(whole)
    shown = _choose(whole, proven, job)
    lanes = _lanes(shown)
    text_x = lanes[-1].x + (92 if lanes[-1].kind == "row" else 44)
    rows, gaps, bottom = _rows(shown, whole, proven=proven, lanes=lanes, text_x=text_x, job=job)
    scale = _Scale([moment.t_ms for moment in shown], [row.y for row in rows], bottom)
    holds = _holds(whole, job)
    bars = (*_row_bars(whole, job, scale, lanes), *_belief_bars(whole, job, holds, scale, lanes))
    return Timeline(
        height=bottom + 10,
        text_x=text_x,
        lanes=lanes,
        moments=tuple(rows),
        bars=tuple(bars),
        gaps=tuple(gaps),
        job=words.key(job) if job is not None else "",
        description=_description(shown, lanes),
        kinds=frozenset(bar.kind for bar in bars),
    )


class _Scale:
    """Milliseconds to pixels: exact at each row, in proportion between two rows."""

    def __init__(self, times_ms: Sequence[float], ys: Sequence[float], bottom: float) -> None:
        self._times, self._ys, self.bottom = times_ms, ys, bottom

    def __call__(self, t_ms: float) -> float:
        after = bisect_right(self._times, t_ms)
        if after == 0:
            return self._ys[0]
        if after == len(self._times):
            return self._ys[-1] if t_ms == self._times[-1] else self.bottom
        t0, t1 = self._times[after - 1], self._times[after]
        share = (t_ms - t0) / (t1 - t0) if t1 > t0 else 0.0
        return round(self._ys[after - 1] + share * (self._ys[after] - self._ys[after - 1]), 2)


def _most_told(moments: Sequence[Witness]) -> str | None:
    """The job with the most claims, then the most transitions, then the first."""
    claims: Counter[str] = Counter()
    for moment in moments:
        if moment.key is not None and moment.kind in _TRANSITIONS:
            claims[moment.key] += 100 if moment.kind == Change.CLAIM else 1
    return claims.most_common(1)[0][0] if claims else None


def _choose(moments: Sequence[Witness], proven: set[int], job: str | None) -> list[Witness]:
    """At most ``_MOST_ROWS``: the proof, then what the row and the faults did, then the rest from the beginning."""

    def importance(moment: Witness) -> int:
        if moment.n in proven:
            return 0
        if moment.key == job and moment.kind in _TRANSITIONS:
            return 1
        return 2 if _lane_of(moment) == "faults" else 3 if moment.key in {job, None} else 4

    return sorted(
        sorted(moments, key=lambda moment: (importance(moment), moment.n))[:_MOST_ROWS], key=lambda moment: moment.n
    )


def _lane_of(moment: Witness) -> str:
    who = moment.who.strip().lower()
    if who.startswith("worker"):
        number = who.removeprefix("worker").strip()
        return f"worker {number}"
    return {"database": "row", "row": "row", "sink": "sink"}.get(who, "faults")


def _actor(moment: Witness) -> str | None:
    return f"worker {moment.worker}" if moment.worker else None


def _lanes(moments: Sequence[Witness]) -> tuple[Lane, ...]:
    """Workers by number, then the row, the sink and the faults, each only when something is in it."""
    present = {_lane_of(moment) for moment in moments} | {actor for moment in moments if (actor := _actor(moment))}
    if any(moment.kind in _TRANSITIONS or moment.kind.startswith("refused ") for moment in moments):
        present.add("row")
    if any(moment.kind in {"called", "answered", "applied", "asked"} for moment in moments):
        present.add("sink")
    workers = sorted((name for name in present if name.startswith("worker")), key=lambda name: (len(name), name))
    crowded = len(workers) > 4
    lanes: list[Lane] = []
    x = float(_FIRST_LANE_X)
    for place, name in enumerate(workers):
        lanes.append(Lane("worker", name.replace("worker ", "w") if crowded else name, x, place % 6 + 1))
        x += 34 if crowded else 72
    for kind, name, width in (("row", "job row", 112), ("sink", "sink", 62), ("faults", "faults", 62)):
        if kind in present:
            lanes.append(Lane(kind, name, x, 0))
            x += width
    return tuple(lanes)


def _find(lanes: Sequence[Lane], name: str | None) -> Lane | None:
    wanted = None if name is None else name.replace("worker ", "w")
    for lane in lanes:
        if (lane.kind if lane.kind != "worker" else lane.name.replace("worker ", "w")) == wanted:
            return lane
    return None


def _rows(
    shown: Sequence[Witness],
    whole: Sequence[Witness],
    *,
    proven: set[int],
    lanes: Sequence[Lane],
    text_x: float,
    job: str | None,
) -> tuple[list[Moment], list[Gap], float]:
    place = {moment.n: index for index, moment in enumerate(whole)}
    columns = int((WIDTH - text_x - 8) / _CHARACTER_WIDTH)
    rows: list[Moment] = []
    gaps: list[Gap] = []
    top = float(_TOP)
    for before, moment in zip([None, *shown], shown, strict=False):
        notes = []
        if before is not None and (left_out := place[moment.n] - place[before.n] - 1):
            notes.append(f"{left_out} more moment{'s' if left_out > 1 else ''}")
        if before is not None and moment.t_ms - before.t_ms >= _SILENCE_MS:
            notes.append(f"{(moment.t_ms - before.t_ms) / 1000:.1f} s pass")
        if notes:
            gaps.append(Gap(top + _GAP_HEIGHT / 2 + 1, ", ".join(notes)))
            top += _GAP_HEIGHT
        who = words.legible(moment.who)
        text = words.told(moment.text, moment.key or job, 260)
        room = round(columns * _BOLD_SHARE) if moment.n in proven else columns
        wrapped = textwrap.wrap(f"{who}\u00a0 {text}", room) or [who]
        height = _ROW_HEIGHT + _LINE_HEIGHT * (len(wrapped) - 1)
        own = _find(lanes, _lane_of(moment)) or lanes[0]
        origin, target = _direction(moment, own, lanes)
        actor = _find(lanes, _actor(moment))
        rows.append(
            Moment(
                y=top + _ROW_HEIGHT / 2,
                top=top,
                height=height,
                time=words.moment(moment.t_ms),
                who=who,
                lines=(wrapped[0].removeprefix(who).strip(), *wrapped[1:]),
                x=origin.x,
                hue=origin.hue or (actor.hue if origin.kind == "sink" and actor else 0),
                shape="cross"
                if moment.kind.startswith("refused ")
                else "diamond"
                if origin.kind == "faults"
                else "dot",
                arrow_x=None if target is None else target.x,
                proof=moment.n in proven,
            )
        )
        top += height
    return rows, gaps, top + 4


def _direction(moment: Witness, own: Lane, lanes: Sequence[Lane]) -> tuple[Lane, Lane | None]:
    """From whom to whom: a worker acts on the row or the sink, a fault strikes a worker, the sink answers a worker."""
    worker = _find(lanes, _actor(moment))
    if moment.kind in _TRANSITIONS or moment.kind.startswith("refused "):
        row = _find(lanes, "row")
        return (worker, row) if worker and row else (row or own, None)
    if moment.kind in {"called", "asked"}:
        return own, _find(lanes, "sink") if own.kind == "worker" else None
    if moment.kind == "answered" or own.kind == "faults":
        return own, worker if worker is not own else None
    return own, None


def _holds(moments: Sequence[Witness], job: str | None) -> list[tuple[float, int]]:
    """Whom the row named as its holder, from when on; 0 for nobody."""
    holds: list[tuple[float, int]] = []
    for moment in moments:
        if moment.key != job or job is None:
            continue
        if moment.kind == Change.CLAIM:
            holds.append((moment.t_ms, moment.worker))
        elif moment.kind in _ENDS_A_HOLD or (moment.kind in _TRANSITIONS and moment.state not in {"", State.RUNNING}):
            holds.append((moment.t_ms, 0))
    return holds


def _row_bars(moments: Sequence[Witness], job: str | None, scale: _Scale, lanes: Sequence[Lane]) -> Iterable[Bar]:
    lane = _find(lanes, "row")
    moves = [
        moment
        for moment in moments
        if job is not None and moment.key == job and moment.kind in _TRANSITIONS and moment.state
    ]
    if lane is None:
        return
    holder = 0
    for place, move in enumerate(moves):
        following = moves[place + 1] if place + 1 < len(moves) else None
        bottom = scale.bottom if following is None else scale(following.t_ms)
        holder = move.worker if move.kind == Change.CLAIM else holder if move.state == State.RUNNING else 0
        colour = _find(lanes, f"worker {holder}") if holder else None
        repeated = place > 0 and (moves[place - 1].state, moves[place - 1].token) == (move.state, move.token)
        label = (
            ""
            if repeated
            else words.shorten(words.legible(move.state + (f" · {move.token}" if move.token else "")), 15)
        )
        top = scale(move.t_ms)
        yield Bar(words.legible(move.state), lane.x, top, bottom, colour.hue if colour else 0, label)
        if move.lease_left_ms is not None and move.state == State.RUNNING:
            ends = scale(move.t_ms + max(move.lease_left_ms, 0))
            runs_out = ends < bottom
            yield Bar("lease", lane.x, top, min(ends, bottom), 0, "lease ends" if runs_out else "", not runs_out)


def _belief_bars(
    moments: Sequence[Witness],
    job: str | None,
    holds: Sequence[tuple[float, int]],
    scale: _Scale,
    lanes: Sequence[Lane],
) -> Iterable[Bar]:
    """From a claim until the worker itself ends it, is told that it lost the job, or is gone."""
    for place, claim in enumerate(moments):
        lane = _find(lanes, _actor(claim)) if claim.kind == Change.CLAIM else None
        if lane is None or claim.key is None or claim.key != job:
            continue
        until: float | None = None
        for later in moments[place + 1 :]:
            if later.worker != claim.worker:
                continue
            own = later.key == claim.key and (later.kind in _ENDS_A_HOLD or later.kind in _LEARNS_OF_LOSS)
            if own or later.kind in _GONE or (later.kind == Change.CLAIM and later.key == claim.key):
                until = later.t_ms
                break
        edges = [claim.t_ms, *(t for t, _ in holds if t > claim.t_ms and (until is None or t < until))]
        for index, start in enumerate(edges):
            last = index + 1 == len(edges)
            end = (scale.bottom if until is None else scale(until)) if last else scale(edges[index + 1])
            holder = [worker for t, worker in holds if t <= start][-1]
            kind = "belief" if holder == claim.worker else "mistaken"
            yield Bar(kind, lane.x, scale(start), end, lane.hue, open_ended=last and until is None)


def _description(shown: Sequence[Witness], lanes: Sequence[Lane]) -> str:
    lane_names = words.listing(lane.name for lane in lanes)
    first, last = shown[0].t_ms, shown[-1].t_ms
    return f"{len(shown)} moments from {words.moment(first)} to {words.moment(last)}, time flowing down, in lanes for {lane_names}."
