"""What ``size`` is asked: exact rates and times, read from text with units or given as Fractions, checked either way."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from harness.capacity import quantities as q
from harness.capacity.drain import Inflow
from harness.capacity.mix import SlowClass
from harness.capacity.retries import MOST_ATTEMPTS
from harness.contracts.problem import BadInput

EXACT = ("_per_second", "_seconds", "_ratio", "_share", "_cv2")  # what the names of exact quantities end with


@dataclass(frozen=True)
class SizeQuestion:
    """What is asked. Rates per second, times in seconds, exact; ``from_text`` reads them with units."""

    arrival_per_second: Fraction
    service_seconds: Fraction
    busy_ratio: Fraction
    outage_seconds: Fraction | None = None
    slots: int | None = None  # what is there already; None: what the busy ratio asks for
    recovery_seconds: Fraction | None = None  # RTO: current again this long after recovery
    retry_share: Fraction = Fraction(0)
    max_attempts: int | None = None
    failure_seconds: Fraction | None = None
    slow: SlowClass | None = None
    limit_per_second: Fraction | None = None
    limit_calls: int = 1  # calls per attempt
    limit_burst: int = 0  # tokens saved up during the outage
    overhead_seconds: Fraction = Fraction(0)  # the database's share of each attempt, on the slot
    database_per_second: Fraction | None = None  # claims and completions it sustains without work
    inflow: tuple[Inflow, ...] = ()  # from recovery on, when it is not the arrival rate
    batch: int = 1
    lease_seconds: Fraction | None = None
    heartbeat_seconds: Fraction | None = None
    age_seconds: Fraction | None = None  # the oldest age that is still acceptable
    arrival_cv2: Fraction = Fraction(1)
    service_cv2: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        mistakes = list(self._inexact()) or list(self._mistakes())
        if mistakes:
            raise BadInput(*mistakes)

    def _inexact(self) -> Iterator[str]:
        """Turn whatever is exact into a Fraction; name what is not."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None or not each.name.endswith(EXACT):
                continue
            try:
                object.__setattr__(self, each.name, q.exact(value, each.name))
            except BadInput as bad:
                yield from bad.mistakes

    def _mistakes(self) -> Iterator[str]:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name.endswith(("_per_second", "_seconds")) and value is not None:
                if value < 0 or (value == 0 and each.name != "overhead_seconds"):
                    yield f"{each.name}: {value} must be above zero"
            elif each.name in ("slots", "limit_calls", "batch", "max_attempts") and value is not None and value < 1:
                yield f"{each.name}: {value} must be 1 or more"
            elif each.name in ("limit_burst", "arrival_cv2", "service_cv2", "retry_share") and value < 0:
                yield f"{each.name}: {value} must not be negative"
        if not 0 < self.busy_ratio < 1:
            yield f"busy_ratio: {self.busy_ratio} must be above 0 and below 1"
        if self.retry_share >= 1:
            yield f"retry_share: {self.retry_share} must be below 1"
        if self.inflow and self.inflow[-1].seconds is not None:
            yield "inflow: the last step must hold from then on"

    @classmethod
    def from_text(  # one keyword per option of the command line
        cls,
        *,
        arrival: str,
        service: str,
        busy: str,
        outage: str | None = None,
        slots: str | None = None,
        rto: str | None = None,
        retry: str | None = None,
        max_attempts: str | None = None,
        failure: str | None = None,
        slow: str | None = None,
        limit: str | None = None,
        calls: str | None = None,
        burst: str | None = None,
        overhead: str | None = None,
        database: str | None = None,
        inflow: str | None = None,
        batch: str | None = None,
        lease: str | None = None,
        heartbeat: str | None = None,
        age: str | None = None,
        arrival_cv2: str | None = None,
        service_cv2: str | None = None,
    ) -> "SizeQuestion":
        """Read the options as typed; a BadInput carries one line for each mistake, not only for the first."""
        said: dict[str, Any] = {}
        mistakes: list[str] = []

        def read(name: str, option: str, text: str | None, parse: Any, **how: Any) -> None:
            if text is None:
                return
            try:
                said[name] = parse(text, option, **how)
            except BadInput as bad:
                mistakes.extend(bad.mistakes)

        read("arrival_per_second", "arrival", arrival, q.parse_rate)
        read("service_seconds", "service", service, q.parse_duration)
        read("busy_ratio", "busy", busy, q.parse_ratio)
        read("outage_seconds", "outage", outage, q.parse_duration)
        read("slots", "slots", slots, q.parse_count)
        read("recovery_seconds", "rto", rto, q.parse_duration)
        read("retry_share", "retry", retry, q.parse_ratio, zero=True)
        read("max_attempts", "max-attempts", max_attempts, q.parse_count, most=MOST_ATTEMPTS)
        read("failure_seconds", "failure", failure, q.parse_duration)
        read("slow", "slow", slow, _parse_slow)
        read("limit_per_second", "limit", limit, q.parse_rate)
        read("limit_calls", "calls", calls, q.parse_count)
        read("limit_burst", "burst", burst, q.parse_count)
        read("overhead_seconds", "overhead", overhead, q.parse_duration, zero=True)
        read("database_per_second", "database", database, q.parse_rate)
        read("inflow", "inflow", inflow, _parse_inflow)
        read("batch", "batch", batch, q.parse_count)
        read("lease_seconds", "lease", lease, q.parse_duration)
        read("heartbeat_seconds", "heartbeat", heartbeat, q.parse_duration)
        read("age_seconds", "age", age, q.parse_duration)
        read("arrival_cv2", "arrival-cv2", arrival_cv2, q.parse_number)
        read("service_cv2", "service-cv2", service_cv2, q.parse_number)
        if mistakes:
            raise BadInput(*mistakes)
        return cls(**said)

    def as_dict(self) -> dict[str, Any]:
        """What was asked, plain: only what was said or has a default that matters."""
        said: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None or value == ():
                continue
            if isinstance(value, SlowClass):
                said[each.name] = {"share": q.plain(value.share), "seconds": q.plain(value.seconds)}
            elif isinstance(value, tuple):
                said[each.name] = [
                    {"per_second": q.plain(step.per_second), "seconds": q.plain(step.seconds)} for step in value
                ]
            else:
                said[each.name] = q.plain(value)
        return said


def _parse_slow(text: str, option: str) -> SlowClass:
    return SlowClass(*q.parse_share_of_time(text, option))


def _parse_inflow(text: str, option: str) -> tuple[Inflow, ...]:
    return tuple(Inflow(rate, seconds) for rate, seconds in q.parse_inflow(text, option))
