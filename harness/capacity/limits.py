"""What else than slots holds a queue back: a rate limit of the interface it calls, and the database.

The sustained rate is the smallest of the ceilings; which one it is decides whether more slots help at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Ceiling:
    """One limit in jobs per second, and what it is of."""

    of: str  # "slots", "external limit", "database"
    per_second: Fraction


def slot_ceiling(slots: int, work_seconds: Fraction) -> Ceiling:
    """c/(slot time of a whole job).

    Assumes: slots are never idle. Units: jobs/s. Source: definition; ``Retries.work`` gives the slot time.
    """
    return Ceiling("slots", slots / work_seconds)


def limit_ceiling(limit_per_second: Fraction, attempts_per_job: Fraction, calls_per_attempt: int = 1) -> Ceiling:
    """R/(calls·E[A]): every attempt makes its calls, failed ones too.

    Assumes: the limiter is shared by all slots and counts calls. Units: calls/s to jobs/s. Source: flow conservation.
    """
    return Ceiling("external limit", limit_per_second / (calls_per_attempt * attempts_per_job))


def database_ceiling(attempts_per_second: Fraction, attempts_per_job: Fraction) -> Ceiling:
    """X/E[A], X being the claims and completions the database was measured to sustain, without any work in between.

    Assumes: X was measured at this number of connections and batch size. Units: jobs/s. Source: measurement.
    """
    return Ceiling("database", attempts_per_second / attempts_per_job)


def lowest(ceilings: Sequence[Ceiling]) -> Ceiling:
    """The one that binds; the first of equals."""
    return min(ceilings, key=lambda ceiling: ceiling.per_second)


def backlog_after_burst(backlog: Fraction, saved_tokens: Fraction) -> Fraction:
    """B₀ − b: a token bucket that filled up during the outage lets b jobs pass at once, so T = (B₀ − b)/(R − λ).

    Assumes: the slots can take the burst. Units: jobs. Source: token bucket (RFC 2697 in spirit).
    """
    return max(backlog - saved_tokens, Fraction(0))
