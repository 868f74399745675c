"""For a terminal or a log: a line per scenario, each failure told as a story, and the verdict last.

Plain unless asked: the caller knows whether there is a terminal, how wide it is, and whether colour is wanted.
"""

import textwrap
from collections.abc import Iterator

from harness.contracts.verdict import Verdict
from harness.document import Document, FindingDoc, LoadDoc, PlayDoc, RecordDoc, TableDoc, Witness, measure
from reports import words

NAME = "text"
SUFFIX = ".txt"
FILENAME = "report.txt"

_COLOURS = {Verdict.PASS.value: "32", Verdict.FAIL.value: "31", Verdict.INCONCLUSIVE.value: "33"}
_WORD_WIDTH = len(Verdict.NOT_APPLICABLE.value)
_TITLE_WIDTH = 52
_LEAST_WIDTH = 40


def line(play: PlayDoc, *, colour: bool = False, width: int | None = None) -> str:
    """One play in one line, as it is printed while the run goes on. With ``width`` a long reason is cut to fit."""
    head, tail = _head(play), words.told(play.reason)
    if width is not None:
        room = max(width, _LEAST_WIDTH) - len(head) - 2
        tail = tail if len(tail) <= room else "" if room < 12 else tail[: room - 1].rstrip() + "…"
    return _paint(play, head, colour=colour) + (f"  {tail}" if tail else "")


def render(document: Document, *, colour: bool = False, width: int | None = None, told: bool = False) -> bytes:
    """The final summary. Without ``width`` nothing is wrapped, so that each line can be searched for.

    ``told``: the reader has seen the line of each play already; only the stories follow.
    """
    wide = None if width is None else max(width, _LEAST_WIDTH)
    return ("\n".join(_report(document, colour=colour, width=wide, told=told)) + "\n").encode()


def tables(document: Document) -> bytes:
    """Only the tables of a document, and what is advised."""
    lines = [line for table in document.tables for line in (*_table(table), "")]
    if document.load is not None:
        lines += [words.told(one.text) for one in document.load.advice if one.topic in ("more machines", "which offer")]
    return ("\n".join(lines) + "\n").encode()


def _report(document: Document, *, colour: bool, width: int | None, told: bool) -> Iterator[str]:
    subject, server = document.subject, document.server
    about = f"{words.legible(subject.name)}, {words.legible(subject.guarantee)}"
    where = f"PostgreSQL {words.legible(server.version)} ({words.legible(server.source)})"
    yield from _wrap(f"queueproof {document.tool_version}: {about}, on {where}, seed {document.seed}", width)
    if not told:
        yield ""
    titles = min(max((len(words.label(play)) for play in document.plays), default=0), _TITLE_WIDTH)
    for play in () if told else document.plays:
        yield from _summary(play, titles, colour=colour, width=width)
    for play in document.plays:
        if play.verdict in {Verdict.FAIL, Verdict.INCONCLUSIVE} or play.findings:
            yield ""
            yield from story(play, colour=colour, width=width)
    if document.load is not None:
        yield ""
        yield from _load(document.load, width)
    for table in (*(document.load.tables if document.load is not None else ()), *document.tables):
        yield ""
        yield from _table(table)
    if document.records:
        yield ""
        yield from _records(document, width)
    for note in document.notes:
        yield ""
        yield from _wrap(f"note: {words.told(note)}", width)
    yield ""
    tally = (
        ", ".join(f"{count} {verdict}" for verdict, count in words.counts(document.plays)) or "no scenario was played"
    )
    yield from _wrap(f"{tally}, in {words.seconds(document.seconds)}", width)
    verdict = f"{words.sign(document.verdict)} {words.told(document.summary) or document.verdict}"
    yield _painted(verdict, document.verdict, colour=colour)


def _summary(play: PlayDoc, title_width: int, *, colour: bool, width: int | None) -> Iterator[str]:
    head, reason = _head(play, title_width), words.told(play.reason)
    if width is None or len(head) + 2 + len(reason) <= width:
        yield _paint(play, head, colour=colour) + (f"  {reason}" if reason else "")
        return
    yield _paint(play, head, colour=colour)
    if play.verdict != Verdict.PASS:  # why something held may be cut; why it did not is told whole
        yield from _wrap(reason, width, " " * (_WORD_WIDTH + 4))


def story(play: PlayDoc, *, colour: bool = False, width: int | None = None) -> Iterator[str]:
    """Why one play has its verdict: who did what and when, "because ..., however ...", and the line that reproduces it."""
    yield _painted(f"{words.sign(play.verdict)} {words.label(play)}", play.verdict, colour=colour)
    if not play.findings:
        yield from _wrap(words.told(play.reason), width, "  ")
    for fact in play.facts:
        if not fact.happened and not play.findings:  # a finding says what happened instead
            yield from _wrap(f"did not happen: {words.told(fact.sentence)}", width, "  ")
    for told in words.unjudged(play):
        yield from _wrap(f"not judged: {words.told(told)}", width, "  ")
    for number, (finding, mend) in enumerate(words.with_mends(play.findings), 1):
        yield from _finding(number, finding, mend, width)
    if play.figures:
        figures = "; ".join(" ".join(measure(name, value)) for name, value in play.figures.items())
        yield from _wrap(f"measured: {words.told(figures)}", width, "  ")
    if play.reproduce:
        yield f"  reproduce: {words.legible(play.reproduce)}"  # never wrapped: it is there to be copied


def _finding(number: int, finding: FindingDoc, mend: str, width: int | None) -> Iterator[str]:
    serves = f" ({', '.join(finding.serves)})" if finding.serves else ""
    yield from _wrap(
        f"{number}. {words.legible(finding.title)} [{words.legible(finding.invariant)}]{serves}", width, "  "
    )
    if concerned := words.concerns(finding):
        yield from _wrap(concerned, width, "     ")
    yield from _moments(finding.witnesses, finding.key, width)
    yield from _wrap(words.told(finding.sentence, finding.key), width, "     ")
    if finding.known:
        yield from _wrap(f"known and accepted: {words.told(finding.known)}", width, "     ")
    if mend:
        yield from _wrap(f"usually mended by: {mend}", width, "     ")


def _moments(witnesses: tuple[Witness, ...], key: str | None, width: int | None) -> Iterator[str]:
    times = [words.moment(witness.t_ms) for witness in witnesses]
    time_width = max(map(len, times), default=0)
    who_width = max((len(words.legible(witness.who)) for witness in witnesses), default=0)
    for time, witness in zip(times, witnesses, strict=True):
        lead = f"     {time:>{time_width}}  {words.legible(witness.who):<{who_width}}  "
        text = words.told(witness.text, key)
        yield from _wrap(text, width, lead, " " * len(lead))


def _load(load: LoadDoc, width: int | None) -> Iterator[str]:
    yield "how long until the backlog is gone, with jobs still arriving:"
    names = max((len(one.name) for one in load.estimates), default=0)
    for one in load.estimates:
        yield f"  {one.name:<{names}}  {one.reads}"
        yield from _wrap(words.told(one.told), width, " " * (names + 4))
    if load.terms:
        yield "what the difference is made of:"
        for term in load.terms:
            yield from _wrap(f"{term.name:<26} {term.seconds:+8.2f} s  {words.told(term.told)}", width, "  ", " " * 41)
    if load.thresholds:
        yield "order thresholds, in real time:"
        for threshold in load.thresholds:
            met = {None: "not measured", True: "met", False: "missed"}[threshold.met]
            measured = "" if threshold.measured is None else f" ({threshold.measured:.4g} {threshold.unit})"
            bound = f"{threshold.bound} {threshold.value:g} {threshold.unit}"
            yield f"  {threshold.name:<26} {bound:<24} {met}{measured}"
    if load.bottleneck:
        yield from _wrap(f"what limits: {words.told(load.bottleneck)}", width)


def _table(table: TableDoc) -> Iterator[str]:
    rows = [table.columns, *(tuple(words.told(cell) for cell in row) for row in table.rows)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(table.columns))]
    yield f"{words.told(table.title)}:"
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip()
    if table.told:
        yield words.told(table.told)


def _records(document: Document, width: int | None) -> Iterator[str]:
    yield "acceptance records, each for itself:"
    for record in document.records:
        yield from _wrap(f"{words.sign(record.verdict)} {record.name}: {_because(record)}", width, "  ")
        first = words.told(record.does_not_prove).partition(". ")[0].rstrip(".")
        yield from _wrap(f"does not prove: {first}.", width, "      ")


def _because(record: RecordDoc) -> str:
    return f"{record.verdict}: {words.told(record.reason)}" if record.reason else record.verdict


def _head(play: PlayDoc, title_width: int = _TITLE_WIDTH) -> str:
    stamp = f"{words.sign(play.verdict)} {play.verdict:<{_WORD_WIDTH}}"
    return f"{stamp}  {words.label(play):<{title_width}}  {words.seconds(play.seconds):>7}"


def _paint(play: PlayDoc, head: str, *, colour: bool) -> str:
    stamp = f"{words.sign(play.verdict)} {play.verdict}"
    return _painted(stamp, play.verdict, colour=colour) + head.removeprefix(stamp)


def _painted(text: str, verdict: str, *, colour: bool) -> str:
    return f"\x1b[1;{_COLOURS[verdict]}m{text}\x1b[0m" if colour and verdict in _COLOURS else text


def _wrap(text: str, width: int | None, lead: str = "", hang: str | None = None) -> list[str]:
    """``lead`` begins the first line, ``hang`` the others; the same when not given. Narrow columns keep room to breathe."""
    if width is None:
        return [lead + text]
    rest = lead if hang is None else hang
    wide = max(width, len(lead) + 24)
    return textwrap.wrap(text, wide, initial_indent=lead, subsequent_indent=rest) or [lead.rstrip()]
