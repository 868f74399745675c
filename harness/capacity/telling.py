"""A size's answer as a person reads it: each number beside what it means, then terms, ages and notes. Pure text."""

import textwrap
from collections.abc import Iterator

from harness.capacity import quantities as q
from harness.capacity.answer import NEVER, SizeAnswer

_NAME, _VALUE = 34, 26
_LEAST_WIDTH = 60


def tell(answer: SizeAnswer, width: int | None = None) -> str:
    """The whole answer; with ``width``, meanings are wrapped below their numbers."""
    return "\n".join(_lines(answer, None if width is None else max(width, _LEAST_WIDTH))) + "\n"


def _lines(answer: SizeAnswer, width: int | None) -> Iterator[str]:
    yield _headline(answer)
    yield ""
    for figure in answer.figures:
        name = figure.name.removesuffix("_seconds").removesuffix("_per_second").replace("_", " ")
        yield f"{name:{_NAME}} {figure.reads}"
        yield from _wrap(figure.meaning, width, "    ")
    if answer.terms:
        yield ""
        yield "The drain, one thing after another taken into account:"
        for term in answer.terms:
            reads = NEVER if term.seconds is None else q.say_seconds(term.seconds)
            rate = f"{q.say_number(term.ceiling.per_second)}/s ({term.ceiling.of})"
            yield f"  {term.name:54} {rate:{_VALUE}} {reads}"
    if answer.ages:
        yield ""
        yield "The oldest runnable job, after recovery:"
        for point in answer.ages:
            yield f"  after {q.say_seconds(point.after_recovery_seconds):28} it is {q.say_seconds(point.age_seconds)} old"
    if answer.mistake:
        yield ""
        yield from _wrap(answer.mistake, width, "")
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from _wrap(note, width, "note: ", "      ")


def _headline(answer: SizeAnswer) -> str:
    slots = "1 slot" if answer.slots == 1 else f"{answer.slots} slots"
    if answer.drain is None:
        return f"{slots}, {q.say_number(answer.capacity.per_second)}/s sustained"
    if answer.drain.seconds is None:
        return f"{slots}: the backlog of the outage {NEVER}"
    told = f"{slots}: the backlog of the outage drains in {q.say_seconds(answer.drain.seconds)}"
    if answer.band is not None:
        low, high = answer.band.limits
        told += f", {answer.band.confidence:.0%} of the time in {low:.0f} to {high:.0f} s"
    if answer.meets_recovery is None:
        return told
    return f"{told}; {'within' if answer.meets_recovery else 'longer than'} the recovery time"


def _wrap(text: str, width: int | None, lead: str, hang: str | None = None) -> list[str]:
    if width is None:
        return [lead + text]
    return textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=lead if hang is None else hang)
