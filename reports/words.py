"""The words and signs that all faces share, and how foreign text is made safe to show.

A job's key is the subject's and may hold anything: escape sequences, line breaks, direction overrides, 4 kB of text.
Escaping for a format (HTML, XML, Markdown) is each face's own business and comes after this.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.contracts.scenario import HEADINGS
from harness.contracts.verdict import Verdict
from harness.document import Document, FindingDoc, PlayDoc

SIGNS = {
    Verdict.PASS.value: "✓",
    Verdict.FAIL.value: "✗",
    Verdict.INCONCLUSIVE.value: "?",
    Verdict.NOT_APPLICABLE.value: "–",
    "not run": "○",
}
ORDER = (Verdict.FAIL.value, Verdict.INCONCLUSIVE.value, Verdict.PASS.value, Verdict.NOT_APPLICABLE.value)
HEADLINES = {
    Verdict.PASS.value: "Held",
    Verdict.FAIL.value: "Broken",
    Verdict.INCONCLUSIVE.value: "Inconclusive",
    Verdict.NOT_APPLICABLE.value: "Nothing applies",
}

_KEY_LIMIT = 72
_TEXT_LIMIT = 900


def sign(verdict: str) -> str:
    return SIGNS.get(verdict, "·")


def legible(text: str) -> str:
    """One line in which nothing acts on the reader's terminal or page: control and format characters become visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        # U+FFFE and U+FFFF are the two non-characters that XML refuses
        return "\N{REPLACEMENT CHARACTER}" if character in "\ufffe\uffff" else character
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    code = ord(character)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def shorten(text: str, limit: int, whole: int | None = None) -> str:
    """Cut in the middle, saying how long it is (``whole``, if escapes made it longer): both ends tell keys apart."""
    if len(text) <= limit:
        return text
    note = f"…({len(text) if whole is None else whole:,} characters)…"
    tail = max((limit - len(note)) // 3, 4)
    return text[: max(limit - len(note) - tail, 8)] + note + text[-tail:]


def key(text: str) -> str:
    """A job's key as shown in a heading or a sentence."""
    return shorten(legible(text), _KEY_LIMIT, len(text))


def told(text: str, of_key: str | None = None, limit: int = _TEXT_LIMIT) -> str:
    """A sentence as shown: legible, the job's own long key shortened where it stands, and bounded."""
    if of_key and len(of_key) > _KEY_LIMIT:
        for spelling in (of_key, repr(of_key)[1:-1], legible(of_key)):
            text = text.replace(spelling, key(of_key))
    return shorten(legible(text), limit)


def paragraphs(text: str) -> tuple[tuple[str, str], ...]:
    """A scenario's docstring as pairs of heading (or nothing) and paragraph, its line breaks undone."""
    found: list[tuple[str, str]] = []
    heading, body = "", ""
    for raw in [*text.strip().split("\n"), ""]:
        line = raw.strip()
        opens = next((one for one in HEADINGS if line == one or line.startswith(f"{one}:")), None)
        if (opens or not line) and body:
            found.append((heading, legible(body)))
            heading, body = "", ""
        if opens:
            heading, body = opens, line.removeprefix(opens).lstrip(": ")
        elif line:
            body = f"{body} {line}".lstrip()
    return tuple(found)


def label(play: PlayDoc) -> str:
    """A play's title; the repetition is told only when there is one."""
    return legible(play.title) + (f" ({play.repeat})" if play.repeat > 1 else "")


def seconds(value: float) -> str:
    return f"{value:.1f} s"


def moment(t_ms: float) -> str:
    """A time of a story. Milliseconds below ten seconds, so that dense moments can be told apart."""
    return f"{t_ms:,.1f} ms" if t_ms < 10_000 else f"{t_ms / 1000:,.2f} s"


def concerns(finding: FindingDoc) -> str:
    """Whom a finding is about: the job and the workers, or nothing."""
    parts = []
    if finding.key is not None:
        parts.append(f"job {key(finding.key)}")
    if finding.workers:
        parts.append(f"worker{'s' if len(finding.workers) > 1 else ''} {listing(map(str, finding.workers))}")
    return ", ".join(parts)


def with_mends(findings: Iterable[FindingDoc]) -> Iterator[tuple[FindingDoc, str]]:
    """Each finding, with how it is usually mended; of several by one invariant only the first tells it."""
    seen: set[str] = set()
    for finding in findings:
        yield finding, "" if finding.invariant in seen else told(finding.mend)
        seen.add(finding.invariant)


def spans(text: str) -> tuple[tuple[str, bool], ...]:
    """Text at whose back-ticks code begins and ends, as pairs of a piece and whether it is code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return ((text, False),)  # one of them is no pair's
    return tuple((piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece)


def listing(items: Iterable[str]) -> str:
    """``a, b and c``."""
    whole = list(items)
    return " and ".join([", ".join(whole[:-1]), whole[-1]]) if len(whole) > 1 else "".join(whole)


def counts(plays: Sequence[PlayDoc]) -> tuple[tuple[str, int], ...]:
    """How many plays had which verdict, worst first; none that did not occur."""
    seen = Counter(play.verdict for play in plays)
    known = [(verdict, seen[verdict]) for verdict in ORDER if seen[verdict]]
    return (*known, *sorted((verdict, count) for verdict, count in seen.items() if verdict not in ORDER))


def worst_first(plays: Sequence[PlayDoc]) -> tuple[PlayDoc, ...]:
    rank = {verdict: place for place, verdict in enumerate(ORDER)}
    return tuple(sorted(plays, key=lambda play: rank.get(play.verdict, len(ORDER))))


def to_reproduce(document: Document) -> str:
    """The one line to copy: of the worst play that has one, else the command of the run."""
    bad = [play for play in worst_first(document.plays) if play.verdict in ORDER[:2] and play.reproduce]
    return legible(bad[0].reproduce if bad else document.command)


def unjudged(play: PlayDoc) -> tuple[str, ...]:
    """What could not be judged of a play that nothing is found in, each with why; the one that its reason names left out."""
    if play.findings:
        return ()
    doubts = (f"{j.invariant}: {j.reason}" for j in play.judgements if j.verdict == Verdict.INCONCLUSIVE.value)
    return tuple(doubt for doubt in doubts if not play.reason.startswith(doubt))
