"""For people, and for those they must convince: one self-contained page, without script, network or picture files.

The order is that of a reader's questions: did it hold, how do I see it myself, what is proven and what is not, what
broke, and then everything else.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import jinja2
import markupsafe

from harness.contracts.verdict import Verdict
from harness.document import Document, FindingDoc, PlayDoc, RecordDoc, measure
from reports import charts, load_plots, words

NAME = "html"
SUFFIX = ".html"
FILENAME = "report.html"


@dataclass(frozen=True)
class _Told:
    """A finding with its drawing, and how it is usually mended where that is told."""

    finding: FindingDoc
    mend: str
    drawing: charts.Timeline | None


@dataclass(frozen=True)
class _Requirement:
    id: str
    title: str
    verdict: str
    served_by: tuple[str, ...]


@dataclass(frozen=True)
class _Chapter:
    """One play as the page shows it. ``id`` is its anchor."""

    id: str
    play: PlayDoc
    told: tuple[_Told, ...]
    drawing: charts.Timeline | None
    figures: tuple[tuple[str, str], ...]

    @property
    def needs_telling(self) -> bool:
        return bool(self.told) or self.play.verdict in {Verdict.FAIL, Verdict.INCONCLUSIVE}


def render(document: Document) -> bytes:
    """The whole page."""
    chapters = [_chapter(number, play) for number, play in enumerate(document.plays, 1)]
    headline = words.HEADLINES.get(document.verdict, document.verdict)
    page = _environment().get_template("report.html.jinja")
    return page.render(
        document=document,
        chapters=chapters,
        ordered=sorted(chapters, key=lambda chapter: _rank(chapter.play.verdict)),
        stories=sorted((one for one in chapters if one.needs_telling), key=lambda chapter: _rank(chapter.play.verdict)),
        strip=charts.strip(document.plays),
        counts=words.counts(document.plays),
        headline=headline,
        summary=_without(headline, words.told(document.summary)),
        when=document.started_at.replace("T", " ").replace("+00:00", " UTC"),
        reproduce=words.to_reproduce(document),
        requirements=[_requirement(document, name) for name in sorted(document.requirements, key=_natural)],
        columns=_columns,
        load=document.load,
        plots=load_plots.plots(document.load) if document.load is not None else (),
        tables=(*(document.load.tables if document.load is not None else ()), *document.tables),
    ).encode()


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_legible,
    )
    environment.globals.update(
        sign=words.sign, label=words.label, seconds=words.seconds, moment=words.moment, told=words.told, key=words.key,
        concerns=words.concerns, spans=words.spans, paragraphs=words.paragraphs, width=charts.WIDTH, pass_=Verdict.PASS.value,
    )  # fmt: skip
    environment.filters["slug"] = lambda verdict: "".join(c if c.isalnum() else "-" for c in verdict)
    return environment


def _legible(value: object) -> object:
    """Nothing reaches the page with a character that acts on it; escaping comes after, by autoescape."""
    return words.legible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


def _chapter(number: int, play: PlayDoc) -> _Chapter:
    told = tuple(
        _Told(finding, mend, charts.timeline(play.timeline, finding.witnesses, finding.key))
        for finding, mend in words.with_mends(play.findings)
    )
    return _Chapter(
        id=f"play-{number}",
        play=play,
        told=told,
        drawing=None if told else charts.timeline(play.timeline),
        figures=tuple(measure(name, value) for name, value in play.figures.items()),
    )


def _without(headline: str, summary: str) -> str:
    """The summary begins with the verdict's word, as a terminal needs it; beside the headline it would be said twice."""
    if not summary.lower().startswith(headline.lower()):
        return summary
    rest = summary[len(headline) :].strip().removeprefix(":").strip()
    return rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest


def _columns(record: RecordDoc) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for row in record.rows for column in row))


def _rank(verdict: str) -> int:
    return words.ORDER.index(verdict) if verdict in words.ORDER else len(words.ORDER)


def _requirement(document: Document, name: str) -> _Requirement:
    """A requirement is as bad as the worst play or judgement that serves it."""
    served_by = document.requirements[name]
    plays = {play.verdict for play in document.plays if play.scenario in served_by}
    judged = {one.verdict for play in document.plays for one in play.judgements if one.invariant in served_by}
    return _Requirement(name, document.requirement_titles.get(name, ""), _worst(plays | judged), served_by)


def _worst(verdicts: Iterable[str]) -> str:
    return min(verdicts, key=_rank, default="not run")


def _natural(name: str) -> tuple[str, int, str]:
    letters = name.rstrip("0123456789")
    digits = name[len(letters) :]
    return letters, int(digits or 0), name
