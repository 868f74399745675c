"""What a load run is asked to do, read from text with units, checked, and compressed in time.

A plan is in real time, exact; ``Scaled`` is the same plan as it is run: times divided by the time scale, rates multiplied.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast, get_args

from harness.capacity import quantities as q
from harness.capacity.draws import Shape
from harness.capacity.mix import SlowClass
from harness.capacity.question import SizeQuestion
from harness.contracts.problem import BadInput
from harness.load.recorded import read_recorded, span_seconds

OutageKind = Literal["workers", "sink", "database"]
StuckHead = Literal["failing", "locked"]
Arrivals = Literal["poisson", "even", "ramp", "trace"]

MOST_SCALE = 100
MOST_WORKERS = 64
BUSY = Fraction(6, 10)
STEADY_SECONDS = Fraction(60)
LEASE_SECONDS = Fraction(30)
BEATS_PER_LEASE = 5
POLL_SECONDS = Fraction(1)
BACKOFF_SECONDS = Fraction(1)
BACKOFF_CAP_SECONDS = Fraction(60)
MOST_DISAGREEMENT = 0.05  # between a recorded trace's mean rate and the one that is typed


@dataclass(frozen=True)
class Ramp:
    """Arrivals that grow (or fall) evenly from one rate to another, and then stay."""

    from_per_second: Fraction
    to_per_second: Fraction
    seconds: Fraction


@dataclass(frozen=True)
class LoadPlan:
    """One run, in real time: rates per second, times in seconds, exact."""

    arrival_per_second: Fraction
    service_seconds: Fraction
    slots: int
    outage_seconds: Fraction
    arrivals: Arrivals = "poisson"
    ramp: Ramp | None = None
    trace_file: Path | None = None
    service_shape: Shape = "exponential"
    service_cv2: Fraction = Fraction(1)
    slow: SlowClass | None = None
    failure_share: Fraction = Fraction(0)
    limit_per_second: Fraction | None = None
    limit_burst: int = 1
    outage: OutageKind = "workers"
    steady_seconds: Fraction = STEADY_SECONDS
    recovery_seconds: Fraction | None = None  # the RTO it is held to; None: what theory says is the yardstick
    age_seconds: Fraction | None = None  # the oldest age that is acceptable; None: what the steady phase shows
    at_most_seconds: Fraction | None = None
    time_scale: Fraction = Fraction(1)
    workers: int = 1
    external: bool = False
    batch: int | None = None
    prefetch: int | None = None
    lease_seconds: Fraction = LEASE_SECONDS
    heartbeat_seconds: Fraction = LEASE_SECONDS / BEATS_PER_LEASE
    poll_seconds: Fraction = POLL_SECONDS
    backoff_seconds: Fraction = BACKOFF_SECONDS
    backoff_cap_seconds: Fraction = BACKOFF_CAP_SECONDS
    stuck_head: StuckHead | None = None
    worker_env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise BadInput(*mistakes)

    def _mistakes(self) -> list[str]:
        found: list[str] = []
        if self.workers > self.slots:
            found.append(f"workers: {self.workers} is more than the {self.slots} slots; each needs one at least")
        if self.at_most_seconds is not None and self.outage_seconds >= self.at_most_seconds:
            found.append(
                f"outage: {q.say_seconds(self.outage_seconds)} is longer than the run,"
                f" which may take {q.say_seconds(self.at_most_seconds)} (at-most)"
            )
        if self.external and self.outage == "workers":
            found.append(
                "outage-of: workers on other machines are not ours to kill; with --workers external choose sink or database"
            )
        if self.heartbeat_seconds * 2 > self.lease_seconds:
            found.append(f"heartbeat: {q.say_seconds(self.heartbeat_seconds)} must be at most half the lease")
        return found

    @property
    def question(self) -> SizeQuestion:
        """The same, asked of theory."""
        return SizeQuestion(
            arrival_per_second=self.lasting_per_second,
            service_seconds=self.service_seconds,
            busy_ratio=BUSY,
            outage_seconds=self.outage_seconds,
            slots=self.slots,
            recovery_seconds=self.recovery_seconds,
            retry_share=self.failure_share,
            slow=self.slow,
            limit_per_second=self.limit_per_second,
            arrival_cv2=Fraction(0) if self.arrivals == "even" else Fraction(1),
            service_cv2=self.service_cv2,
            age_seconds=self.age_seconds,
        )

    @property
    def lasting_per_second(self) -> Fraction:
        """The rate at which jobs arrive during the outage and the recovery."""
        return self.ramp.to_per_second if self.ramp is not None else self.arrival_per_second

    def scaled(self) -> "Scaled":
        """As it is run."""
        return Scaled(self)


class Scaled:
    """A plan in the seconds of the run. Database, network and CPU are not compressed: their share grows by the scale."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.scale = float(plan.time_scale)
        self.arrival_per_second = self.rate(plan.lasting_per_second)
        self.service_seconds = self.time(plan.service_seconds)
        self.outage_seconds = self.time(plan.outage_seconds)
        self.steady_seconds = self.time(plan.steady_seconds)
        self.lease_seconds = self.time(plan.lease_seconds)
        self.heartbeat_seconds = self.time(plan.heartbeat_seconds)
        self.poll_seconds = self.time(plan.poll_seconds)
        self.backoff_seconds = self.time(plan.backoff_seconds)
        self.backoff_cap_seconds = self.time(plan.backoff_cap_seconds)

    def time(self, seconds: Fraction) -> float:
        """A real time in the run's seconds."""
        return float(seconds / self.plan.time_scale)

    def rate(self, per_second: Fraction) -> float:
        """A real rate per second of the run."""
        return float(per_second * self.plan.time_scale)

    def question(self) -> SizeQuestion:
        """Theory asked about the run as it is run."""
        plan, scale = self.plan, self.plan.time_scale
        asked = plan.question
        return SizeQuestion(
            arrival_per_second=asked.arrival_per_second * scale,
            service_seconds=asked.service_seconds / scale,
            busy_ratio=asked.busy_ratio,
            outage_seconds=plan.outage_seconds / scale,
            slots=plan.slots,
            recovery_seconds=None if plan.recovery_seconds is None else plan.recovery_seconds / scale,
            retry_share=plan.failure_share,
            slow=None if plan.slow is None else SlowClass(plan.slow.share, plan.slow.seconds / scale),
            limit_per_second=None if plan.limit_per_second is None else plan.limit_per_second * scale,
            arrival_cv2=asked.arrival_cv2,
            service_cv2=asked.service_cv2,
        )


def read_plan(**text: str | None) -> LoadPlan:
    """Options as typed; a BadInput carries a line for each mistake."""
    said: dict[str, Any] = {}
    mistakes: list[str] = []

    def read(name: str, option: str, parse: Callable[..., Any], **how: Any) -> None:
        given = text.get(option.replace("-", "_"))
        if given is None:
            return
        try:
            said[name] = parse(given, option, **how)
        except BadInput as bad:
            mistakes.extend(bad.mistakes)

    read("arrival_per_second", "arrival", q.parse_rate)
    read("service_seconds", "service", q.parse_duration)
    read("slots", "slots", q.parse_count, most=100_000)
    read("outage_seconds", "outage", q.parse_duration)
    read("arrivals", "arrivals", _parse_arrivals)
    read("shape", "shape", _parse_shape)
    read("slow", "slow", _parse_slow)
    read("failure_share", "retry", q.parse_ratio, zero=True)
    read("limit_per_second", "limit", q.parse_rate)
    read("limit_burst", "burst", q.parse_count)
    read("outage", "outage-of", _parse_choice, of=get_args(OutageKind))
    read("steady_seconds", "steady", q.parse_duration)
    read("recovery_seconds", "rto", q.parse_duration)
    read("age_seconds", "age", q.parse_duration)
    read("at_most_seconds", "at-most", q.parse_duration)
    read("time_scale", "time-scale", _parse_scale)
    read("workers", "workers", _parse_workers)
    read("batch", "batch", q.parse_count)
    read("prefetch", "prefetch", q.parse_count)
    read("lease_seconds", "lease", q.parse_duration)
    read("heartbeat_seconds", "heartbeat", q.parse_duration)
    read("poll_seconds", "poll", q.parse_duration)
    read("backoff_seconds", "backoff", q.parse_duration)
    read("backoff_cap_seconds", "backoff-cap", q.parse_duration)
    read("stuck_head", "stuck-head", _parse_choice, of=get_args(StuckHead))
    if mistakes:
        raise BadInput(*mistakes)
    if "heartbeat_seconds" not in said and "lease_seconds" in said:
        said["heartbeat_seconds"] = said["lease_seconds"] / BEATS_PER_LEASE
    if "shape" in said:
        said["service_shape"], said["service_cv2"] = said.pop("shape")
    if "workers" in said:
        said["workers"], said["external"] = said["workers"]
    if "arrivals" in said:
        said |= said.pop("arrivals")
    _agree(said, text.get("arrival"), text.get("arrivals"))
    return LoadPlan(**said)


def _agree(said: dict[str, Any], arrival: str | None, arrivals: str | None) -> None:
    """Theory is asked with the rate that is typed, so the arrivals must have it. Raises BadInput."""
    typed = said.get("arrival_per_second")
    if isinstance(ramp := said.get("ramp"), Ramp):
        if typed not in (None, ramp.to_per_second):
            raise BadInput(f'arrival: "{arrival}" is not the rate at which {arrivals} ends; that is the one that lasts')
        said["arrival_per_second"] = ramp.from_per_second
    if isinstance(file := said.get("trace_file"), Path):
        times = read_recorded(file)
        recorded = len(times) / span_seconds(times)
        if typed is not None and abs(recorded / float(typed) - 1) > MOST_DISAGREEMENT:
            raise BadInput(f'arrival: "{arrival}" is not the rate of {file}, which holds {recorded:.4g}/s on average')


def _parse_choice(text: str, field_: str, *, of: tuple[str, ...]) -> str:
    if text not in of:
        raise BadInput(f'{field_}: "{text}" is not one of {", ".join(of)}')
    return text


def _parse_scale(text: str, field_: str) -> Fraction:
    scale = q.parse_number(text, field_)
    if not 1 <= scale <= MOST_SCALE:
        raise BadInput(f'{field_}: "{text}" must be from 1 to {MOST_SCALE}')
    return scale


def _parse_workers(text: str, field_: str) -> tuple[int, bool]:
    where, colon, number = text.partition(":")
    if where == "external":
        return q.parse_count(number if colon else "1", field_, most=MOST_WORKERS), True
    return q.parse_count(text, field_, most=MOST_WORKERS), False


def _parse_slow(text: str, field_: str) -> SlowClass:
    return SlowClass(*q.parse_share_of_time(text, field_))


def _parse_shape(text: str, field_: str) -> tuple[Shape, Fraction]:
    name, colon, spread = text.partition(":")
    if name == "lognormal":
        return "lognormal", q.parse_number(spread if colon else "4", field_)
    if name in get_args(Shape) and not colon:
        return cast("Shape", name), Fraction(1 if name == "exponential" else 0)
    raise BadInput(f'{field_}: "{text}" is not exponential, fixed or lognormal:CV2')


def _parse_arrivals(text: str, field_: str) -> dict[str, Any]:
    name, colon, rest = text.partition(":")
    if name in ("poisson", "even") and not colon:
        return {"arrivals": name}
    if name == "ramp" and rest.count(":") == 2:
        low, high, seconds = rest.split(":")
        ramp = Ramp(q.parse_rate(low, field_), q.parse_rate(high, field_), q.parse_duration(seconds, field_))
        return {"arrivals": "ramp", "ramp": ramp}
    if name == "trace" and rest:
        if not Path(rest).is_file():
            raise BadInput(f'{field_}: "{text}": there is no file {rest}; it holds one time in seconds per line')
        return {"arrivals": "trace", "trace_file": Path(rest)}
    raise BadInput(f'{field_}: "{text}" is not poisson, even, ramp:5/s:20/s:600s or trace:FILE')
