"""Order thresholds: the numbers of a load run that a vendor can be held to, at its job mix and its slots."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.document import ThresholdDoc

MOST_DATABASE_SHARE = 0.7  # of its cores while draining: beyond it, waits grow faster than load
MOST_FLUSH_MS = 10.0
CLAIM_SHARE_OF_SERVICE = 0.5
LEAST_CLAIM_SECONDS = 0.1


@dataclass(frozen=True)
class Demand:
    """What the business needs, in real time."""

    arrival_per_second: float
    outage_seconds: float
    recovery_seconds: float  # current again so long after recovery
    age_seconds: float  # the oldest runnable age that is acceptable when nothing is wrong
    service_seconds: float


@dataclass(frozen=True)
class Shown:
    """What a run showed, in real time; None: it was not measured."""

    completion_low_per_second: float | None = None
    current_seconds: float | None = None
    steady_age_seconds: float | None = None
    claim_p95_seconds: float | None = None
    database_cores: float | None = None
    cores: int | None = None
    flush_p95_ms: float | None = None
    fsync: bool = True


def thresholds(demand: Demand, shown: Shown) -> tuple[ThresholdDoc, ...]:
    """All of them; one that was not measured is stated all the same, for the vendor's machine to be measured against."""
    return tuple(_thresholds(demand, shown))


def _thresholds(demand: Demand, shown: Shown) -> Iterator[ThresholdDoc]:
    needed = demand.arrival_per_second * (1 + demand.outage_seconds / demand.recovery_seconds)
    yield _at_least(
        "completion rate", needed, "jobs/s", shown.completion_low_per_second,
        f"sustained while {demand.arrival_per_second:g}/s keep arriving; the lower 95 % bound of what was measured counts",
    )  # fmt: skip
    yield _at_most(
        "time until current again", demand.recovery_seconds, "s", shown.current_seconds,
        f"after an outage of {demand.outage_seconds:g} s, until the oldest job is as young as before",
    )  # fmt: skip
    yield _at_most(
        "oldest runnable age",
        demand.age_seconds,
        "s",
        shown.steady_age_seconds,
        "in the steady phase, by first due time",
    )
    yield _at_most(
        "claim latency, 95 %", max(CLAIM_SHARE_OF_SERVICE * demand.service_seconds, LEAST_CLAIM_SECONDS), "s",
        shown.claim_p95_seconds, "from due to the call's start, in the steady phase",
    )  # fmt: skip
    cores = shown.cores or 1
    yield _at_most(
        "database CPU", MOST_DATABASE_SHARE * cores, "cores", shown.database_cores,
        f"of {cores} while draining, 95 % of the samples",
    )  # fmt: skip
    yield _at_most(
        "disk wait per commit, 95 %", MOST_FLUSH_MS, "ms", shown.flush_p95_ms if shown.fsync else None,
        "flush of the write-ahead log" if shown.fsync else "not measured: this server ran without fsync",
    )  # fmt: skip


def _at_least(name: str, value: float, unit: str, measured: float | None, told: str) -> ThresholdDoc:
    met = None if measured is None else measured >= value
    return ThresholdDoc(name, "at least", round(value, 4), unit, _rounded(measured), met, told)


def _at_most(name: str, value: float, unit: str, measured: float | None, told: str) -> ThresholdDoc:
    met = None if measured is None else measured <= value
    return ThresholdDoc(name, "at most", round(value, 4), unit, _rounded(measured), met, told)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def shown_number(threshold: ThresholdDoc) -> str:
    """As one reads it."""
    return f"{threshold.bound} {threshold.value:g} {threshold.unit}"
