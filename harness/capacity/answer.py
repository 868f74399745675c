"""What ``size`` answers: figures with their meanings, terms, ages and notes, as plain data for JSON and for reports."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from harness.capacity import quantities as q
from harness.capacity.band import Band
from harness.capacity.drain import Drain
from harness.capacity.limits import Ceiling
from harness.capacity.question import SizeQuestion

NEVER = "never drains"


@dataclass(frozen=True)
class Figure:
    """One number of the answer. ``value`` None: there is no such number, and ``reads`` says why ("never drains")."""

    name: str
    value: Fraction | float | int | None
    unit: str
    reads: str
    meaning: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON: whole numbers stay whole."""
        return {"value": q.plain(self.value), "unit": self.unit, "reads": self.reads, "meaning": self.meaning}


@dataclass(frozen=True)
class Term:
    """What the drain becomes when one more thing is taken into account."""

    name: str
    ceiling: Ceiling
    net_per_second: Fraction
    seconds: Fraction | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "term": self.name,
            "capacity_per_second": q.plain(self.ceiling.per_second),
            "limited_by": self.ceiling.of,
            "net_drain_per_second": q.plain(self.net_per_second),
            "drain_seconds": q.plain(self.seconds),
            "reads": NEVER if self.seconds is None else q.say_seconds(self.seconds),
        }


@dataclass(frozen=True)
class AgePoint:
    """The oldest runnable job, some time after recovery."""

    after_recovery_seconds: Fraction
    age_seconds: Fraction

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "after_recovery_seconds": q.plain(self.after_recovery_seconds),
            "oldest_age_seconds": q.plain(self.age_seconds),
        }


@dataclass(frozen=True)
class SizeAnswer:
    """Every number with its meaning. ``drains`` is None when no outage was asked about; ``band`` None when nothing drains."""

    question: SizeQuestion
    slots: int
    capacity: Ceiling
    drain: Drain | None
    band: Band | None
    figures: tuple[Figure, ...]
    terms: tuple[Term, ...] = ()
    ages: tuple[AgePoint, ...] = ()
    mistake: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def drains(self) -> bool | None:
        """Whether the backlog of the outage ever disappears."""
        return None if self.drain is None else not self.drain.never

    @property
    def meets_recovery(self) -> bool | None:
        """Whether it does so within the recovery time; None when one of the two was not asked about."""
        if self.drain is None or self.question.recovery_seconds is None:
            return None
        return self.drain.seconds is not None and self.drain.seconds <= self.question.recovery_seconds

    def figure(self, name: str) -> Figure:
        """By name."""
        return next(figure for figure in self.figures if figure.name == name)

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON can carry it: no infinity, no NaN, no fraction."""
        return {
            "question": self.question.as_dict(),
            "drains": self.drains,
            "meets_recovery": self.meets_recovery,
            "figures": {figure.name: figure.as_dict() for figure in self.figures},
            "terms": [term.as_dict() for term in self.terms],
            "oldest_age": [point.as_dict() for point in self.ages],
            "mistake": self.mistake,
            "notes": list(self.notes),
        }
