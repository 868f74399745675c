"""For a comment on a pull request: the verdict, a table, the four records, and each finding as a short story.

Keys and sentences are a stranger's text inside our page, so nothing of theirs may become markup, a table cell, a
mention of a person, or a picture that is fetched.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.contracts.verdict import Verdict
from harness.document import Document, FindingDoc, LoadDoc, PlayDoc, RecordDoc
from reports import words

NAME = "markdown"
SUFFIX = ".md"
FILENAME = "report.md"

_ROOM = 60_000  # GitHub refuses a comment above 65,536 characters
_CUT = "\n_Cut here: a comment has no more room. The rest is in `report.html` of this run._\n"
_SPECIAL = re.compile(r"[\\`*\[\]|~#!$]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_NO_LINK = "\u200b"  # zero width: a mention, or an address to be fetched, is text again


def render(document: Document) -> bytes:
    """The whole comment, cut at a block's end when it would be too long."""
    parts: list[str] = []
    room = _ROOM - len(_CUT)
    for block in _blocks(document):
        room -= len(block) + 1
        if room < 0:
            parts.append(_CUT)
            break
        parts.append(block)
    return ("\n".join(parts).rstrip("\n") + "\n").encode()


def plain(text: str) -> str:
    """Text that Markdown shows as it is, in a paragraph or in a table cell."""
    escaped = _SPECIAL.sub(lambda found: "\\" + found[0], words.legible(text)).translate(_ENTITIES)
    return re.sub(r"@(?=\w)|(?<=\w):(?=//)|(?<=[Ww]{3})\.", lambda found: found[0] + _NO_LINK, escaped)


def code(text: str) -> str:
    """A code span that its content cannot end. Not for a table cell, where ``|`` would be a border."""
    content = words.legible(text)
    fence = "`" * (max(map(len, re.findall("`+", content)), default=0) + 1)
    pad = " " if content.startswith("`") or content.endswith("`") else ""
    return f"{fence}{pad}{content}{pad}{fence}" if content.strip() else plain(repr(content))


def _blocks(document: Document) -> Iterator[str]:
    yield f"## {words.sign(document.verdict)} {plain(document.subject.name)}: {plain(document.summary)}\n"
    tally = (
        ", ".join(f"{count} {verdict}" for verdict, count in words.counts(document.plays)) or "no scenario was played"
    )
    server = document.server
    yield (
        f"{tally} in {words.seconds(document.seconds)}. Guarantee: {plain(document.subject.guarantee)}. "
        f"PostgreSQL {plain(server.version)} ({plain(server.source)}), queueproof {plain(document.tool_version)}, seed {document.seed}.\n"
    )
    yield f"{_fenced(words.to_reproduce(document))}\n"
    for play in words.worst_first(document.plays):
        if play.findings or play.verdict in {Verdict.FAIL, Verdict.INCONCLUSIVE}:
            yield from _story(play)
    if document.plays:
        yield "### Scenarios\n"
        yield "| verdict | scenario | seconds | why |\n|---|---|--:|---|"
        for play in words.worst_first(document.plays):
            yield (
                f"| {words.sign(play.verdict)} {play.verdict} | {plain(words.label(play))} "
                f"| {play.seconds:.1f} | {plain(words.told(play.reason, limit=300))} |"
            )
        yield ""
    if document.load is not None:
        yield from _load(document.load)
    for table in (*(document.load.tables if document.load is not None else ()), *document.tables):
        yield f"### {plain(table.title)}\n"
        yield _rows(table.columns, table.rows)
        yield f"{plain(words.told(table.told))}\n" if table.told else ""
    if document.records:
        yield "### Acceptance records\n"
        yield "Each stands for itself; none proves another.\n"
        yield "| record | verdict | a pass proves | and does not prove |\n|---|---|---|---|"
        yield from map(_record, document.records)
        yield ""
    for note in document.notes:
        yield f"> {plain(words.told(note))}\n"


def _load(load: LoadDoc) -> Iterator[str]:
    yield "### How long until the backlog is gone\n"
    yield _rows(("answer", "time", "meaning"), [(one.name, one.reads, one.told) for one in load.estimates])
    if load.terms:
        yield _rows(
            ("part of the difference", "seconds", "why"),
            [(one.name, f"{one.seconds:+.2f}", one.told) for one in load.terms],
        )
    if load.thresholds:
        yield "### Order thresholds\n"
        yield _rows(
            ("threshold", "must be", "measured", "met"),
            [
                (
                    one.name,
                    f"{one.bound} {one.value:g} {one.unit}",
                    "not measured" if one.measured is None else f"{one.measured:.4g} {one.unit}",
                    {None: "—", True: "✓", False: "✗"}[one.met],
                )
                for one in load.thresholds
            ],
        )


def _rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(map(plain, columns))} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(plain(words.told(cell, limit=300)) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _story(play: PlayDoc) -> Iterator[str]:
    yield f"### {words.sign(play.verdict)} {plain(words.label(play))}\n"
    if not play.findings:
        yield f"{plain(words.told(play.reason))}\n"
    missed = [fact for fact in play.facts if not fact.happened]
    if missed and not play.findings:  # a finding says what happened instead
        yield "\n".join(f"- did not happen: {plain(words.told(fact.sentence))}" for fact in missed) + "\n"
    if unjudged := words.unjudged(play):
        yield "\n".join(f"- not judged: {plain(words.told(told))}" for told in unjudged) + "\n"
    for finding, mend in words.with_mends(play.findings):
        yield _finding(finding, mend)
    if play.reproduce:
        yield f"{_fenced(words.legible(play.reproduce))}\n"


def _finding(finding: FindingDoc, mend: str) -> str:
    serves = f" ({', '.join(finding.serves)})" if finding.serves else ""
    told = [f"**{plain(finding.title)}**: {code(finding.invariant)}{plain(serves)}", ""]
    if concerned := words.concerns(finding):
        told += [plain(concerned), ""]
    if finding.witnesses:
        told += ["| when | who | what |", "|--:|---|---|"]
        told += [
            f"| {words.moment(witness.t_ms)} | {plain(witness.who)} | {plain(words.told(witness.text, finding.key, 300))} |"
            for witness in finding.witnesses
        ]
        told.append("")
    told += [plain(words.told(finding.sentence, finding.key)), ""]
    if finding.known:
        told += [f"_Known and accepted:_ {plain(words.told(finding.known))}", ""]
    if mend:
        shown = "".join(code(text) if coded else plain(text) for text, coded in words.spans(mend))
        told += [f"_Usually mended by:_ {shown}", ""]
    return "\n".join(told)


def _record(record: RecordDoc) -> str:
    return (
        f"| **{plain(record.name)}** | {words.sign(record.verdict)} {plain(record.verdict)}"
        f"{f': {plain(record.reason)}' if record.reason else ''} "
        f"| {plain(record.proves)} | {plain(record.does_not_prove)} |"
    )


def _fenced(line: str) -> str:
    fence = "`" * max(3, max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{fence}sh\n{line}\n{fence}"
