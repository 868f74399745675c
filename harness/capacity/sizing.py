"""``size``: from an arrival rate, a service time, a busy ratio and an outage to every number an order needs, each with its meaning.

Slots are sized as people do it (mean service time, no failures); what retries, slow jobs, limits and the database make of
those slots is then shown term by term, next to the slots that would keep the busy ratio with all of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from harness.capacity import quantities as q
from harness.capacity.ages import jobs_that_wait_longer, oldest_age_with_inflow, seconds_until_age
from harness.capacity.band import Band, drain_band, jobs_for_precision, judging_window_seconds
from harness.capacity.database import duplicates_per_second, statements_per_second
from harness.capacity.drain import (
    Drain,
    Inflow,
    backlog_jobs,
    capacity_for_recovery,
    drain_with_inflow,
    rerun_jobs,
    slots_for_recovery,
    survivable_outage_seconds,
    wait_of_job_at_recovery,
)
from harness.capacity.limits import (
    Ceiling,
    backlog_after_burst,
    database_ceiling,
    limit_ceiling,
    lowest,
    slot_ceiling,
)
from harness.capacity.mix import SlowClass, Times, mix
from harness.capacity.prefetch import local_wait
from harness.capacity.retries import MOST_ATTEMPTS, Retries
from harness.capacity.theory import (
    capacity_per_second,
    chance_to_wait_longer,
    erlang_c,
    estimated_wait_seconds,
    mean_wait_seconds,
    mean_waiting_jobs,
    offered_load,
    slots_for,
)
from harness.contracts.problem import BadInput

NEVER = "never drains"
SHORT_SERVICE = Fraction(5, 1000)  # below it, claiming and completing a job weigh as much as the job
MOST_SLOTS_FOR_WAITS = 20_000  # Erlang's recursion takes one step per slot
SMALL_BACKLOG = 10  # jobs per slot; the fluid model and its band assume far more
AGE_POINTS = 4  # the age is told at 0, 1/4, 1/2, 3/4 and all of the drain
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
                said[each.name] = {"share": plain(value.share), "seconds": plain(value.seconds)}
            elif isinstance(value, tuple):
                said[each.name] = [
                    {"per_second": plain(step.per_second), "seconds": plain(step.seconds)} for step in value
                ]
            else:
                said[each.name] = plain(value)
        return said


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
        return {"value": plain(self.value), "unit": self.unit, "reads": self.reads, "meaning": self.meaning}


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
            "capacity_per_second": plain(self.ceiling.per_second),
            "limited_by": self.ceiling.of,
            "net_drain_per_second": plain(self.net_per_second),
            "drain_seconds": plain(self.seconds),
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
            "after_recovery_seconds": plain(self.after_recovery_seconds),
            "oldest_age_seconds": plain(self.age_seconds),
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


def size(question: SizeQuestion) -> SizeAnswer:
    """Answer with theory alone: no run, no clock, no chance."""
    return _Sizing(question).answer()


def plain(value: Fraction | float | None) -> float | int | None:
    """A JSON number: an int when it is whole, else a float."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def _parse_slow(text: str, option: str) -> SlowClass:
    return SlowClass(*q.parse_share_of_time(text, option))


def _parse_inflow(text: str, option: str) -> tuple[Inflow, ...]:
    return tuple(Inflow(rate, seconds) for rate, seconds in q.parse_inflow(text, option))


def _per_second(rate: Fraction) -> str:
    return f"{q.say_number(rate)}/s"


class _Sizing:
    """One answer in the making: the quantities that several figures share."""

    def __init__(self, question: SizeQuestion) -> None:
        self.ask = question
        self.load = offered_load(question.arrival_per_second, question.service_seconds)
        self.sized = slots_for(self.load, question.busy_ratio)
        self.slots = question.slots or self.sized
        self.retries = Retries(question.retry_share, question.max_attempts, question.failure_seconds)
        self.attempt = mix(Times(question.service_seconds, question.service_cv2), question.slow)
        self.work = self.retries.work(self.attempt, question.overhead_seconds)
        self.ceilings = self._ceilings(self.retries, self.work)
        self.capacity = lowest(self.ceilings)
        self.inflow = question.inflow or (Inflow(question.arrival_per_second),)
        self.lasting = self.inflow[-1].per_second

    def answer(self) -> SizeAnswer:
        """Put the parts together, in the order in which they are read."""
        ask = self.ask
        result: Drain | None = None
        band: Band | None = None
        figures = [*self._steady()]
        terms: tuple[Term, ...] = ()
        ages: tuple[AgePoint, ...] = ()
        mistake = ""
        if ask.outage_seconds is not None:
            result = self._drain(self.capacity)
            band = self._band(result)
            terms = tuple(self._terms(ask.outage_seconds))
            ages = tuple(self._ages(ask.outage_seconds, result))
            mistake = self._mistake(ask.outage_seconds, result)
            figures += self._outage(ask.outage_seconds, result, band)
            figures += self._ageing(ask.outage_seconds)
        figures += self._recovery()
        figures += self._batch()
        notes = tuple(self._notes(result, band))
        return SizeAnswer(ask, self.slots, self.capacity, result, band, tuple(figures), terms, ages, mistake, notes)

    def _ceilings(self, retries: Retries, work: Times, *, outside: bool = True) -> list[Ceiling]:
        ceilings = [slot_ceiling(self.slots, work.mean_seconds)]
        attempts = retries.attempts_per_job
        if outside and self.ask.limit_per_second is not None:
            ceilings.append(limit_ceiling(self.ask.limit_per_second, attempts, self.ask.limit_calls))
        if outside and self.ask.database_per_second is not None:
            ceilings.append(database_ceiling(self.ask.database_per_second, attempts))
        return ceilings

    def _backlog(self, ceiling: Ceiling) -> Fraction:
        backlog = backlog_jobs(self.ask.arrival_per_second, self.ask.outage_seconds or Fraction(0))
        if ceiling.of == "external limit" and self.ask.limit_burst:
            per_job = self.ask.limit_calls * self.retries.attempts_per_job
            return backlog_after_burst(backlog, self.ask.limit_burst / per_job)
        return backlog

    def _drain(self, ceiling: Ceiling) -> Drain:
        return drain_with_inflow(self._backlog(ceiling), ceiling.per_second, self.inflow)

    def _band(self, result: Drain) -> Band | None:
        steady_limit = self.capacity.of == "external limit"
        jobs = backlog_jobs(self.ask.arrival_per_second, self.ask.outage_seconds or Fraction(0))
        if jobs < self.slots:  # the slots swallow it at once: no diffusion, and no band
            return None
        return drain_band(result, jobs, self.ask.arrival_cv2, Fraction(0) if steady_limit else self.work.cv2)

    def _steady(self) -> Iterator[Figure]:
        ask, load = self.ask, self.load
        rate = _per_second(ask.arrival_per_second)
        service = q.say_seconds(ask.service_seconds)
        yield Figure(
            "offered_load_erlang", load, "Erlang", q.say_number(load),
            f"mean number of busy slots: {rate} × {service}",
        )  # fmt: skip
        yield Figure(
            "slots", self.sized, "slots", str(self.sized),
            f"jobs that may run at the same time: {rate} × {service} ÷ {q.say_number(ask.busy_ratio)}, rounded up. "
            "Slots are not CPU cores: a slot that waits for an answer uses hardly any CPU; how many fit on a core is measured, "
            "not derived",
        )  # fmt: skip
        if self.slots != self.sized:
            yield Figure(
                "slots_given",
                self.slots,
                "slots",
                str(self.slots),
                "slots that were given; all that follows is about them",
            )
        busy = ask.arrival_per_second * self.work.mean_seconds / self.slots
        yield Figure(
            "busy_ratio", busy, "share of time", f"{q.say_number(busy * 100)} %",
            f"how busy {self.slots} slots are with everything counted; 100 % or more cannot last",
        )  # fmt: skip
        whole = slots_for(ask.arrival_per_second * self.work.mean_seconds, ask.busy_ratio)
        yield Figure(
            "slots_with_everything", whole, "slots", str(whole),
            "slots that keep the busy ratio with retries, slow jobs and overhead counted: "
            f"a job takes {q.say_seconds(self.work.mean_seconds)} of slot time in all",
        )  # fmt: skip
        nominal = capacity_per_second(self.slots, ask.service_seconds)
        yield Figure(
            "nominal_capacity_per_second", nominal, "jobs/s", _per_second(nominal),
            f"{self.slots} slots ÷ {service}: on paper, with nothing going wrong",
        )  # fmt: skip
        yield Figure(
            "capacity_per_second", self.capacity.per_second, "jobs/s", _per_second(self.capacity.per_second),
            f"what can be sustained with everything counted; limited by: {self.capacity.of}",
        )  # fmt: skip
        net = self.capacity.per_second - self.lasting
        yield Figure(
            "net_drain_per_second", net, "jobs/s", _per_second(net),
            f"capacity less the {_per_second(self.lasting)} that keep arriving: only this eats a backlog",
        )  # fmt: skip
        if self.retries.dead_share:
            yield Figure(
                "dead_letter_share", self.retries.dead_share, "share of jobs",
                f"{q.say_number(self.retries.dead_share * 100)} %",
                f"jobs that fail at all {self.retries.max_attempts} attempts",
            )  # fmt: skip
        if ask.retry_share and ask.max_attempts is None:
            critical = Retries.critical_share(self.lasting, self._without_retries().per_second)
            yield Figure(
                "critical_retry_share", critical, "share of attempts", f"{q.say_number(critical * 100)} %",
                "share of failing attempts from which on a backlog never drains",
            )  # fmt: skip
        yield from self._waits()
        if ask.heartbeat_seconds is not None:
            yield self._statements(ask.heartbeat_seconds)
        if ask.lease_seconds is not None:
            twice = duplicates_per_second(ask.arrival_per_second, self.attempt.mean_seconds, ask.lease_seconds)
            yield Figure(
                "duplicates_without_renewal_per_second", twice, "jobs/s", f"{twice:.3g}/s",
                "jobs started twice because they outlive a lease that nobody renews (exponential service times)",
            )  # fmt: skip

    def _without_retries(self) -> Ceiling:
        once = Retries()
        return lowest(self._ceilings(once, once.work(self.attempt, self.ask.overhead_seconds)))

    def _waits(self) -> Iterator[Figure]:
        load = self.ask.arrival_per_second * self.work.mean_seconds
        if load >= self.slots or self.capacity.per_second <= self.ask.arrival_per_second:
            yield Figure(
                "mean_wait_seconds", None, "s", "grows for ever",
                "even without an outage more arrives than completes, so there is no mean wait",
            )  # fmt: skip
            return
        if self.slots > MOST_SLOTS_FOR_WAITS:
            return
        floats, mean = float(load), float(self.work.mean_seconds)
        waiting = erlang_c(self.slots, floats)
        wait = mean_wait_seconds(self.slots, floats, mean) or 0.0
        line = mean_waiting_jobs(self.slots, floats) or 0.0
        half = chance_to_wait_longer(self.slots, load, self.work.mean_seconds, Fraction(1, 2))
        model = "Erlang C: Poisson arrivals, exponential work, slots the only limit"
        yield Figure(
            "chance_to_wait", waiting, "probability", f"{waiting:.4g}", f"a job finds every slot busy ({model})"
        )
        yield Figure("mean_wait_seconds", wait, "s", f"{wait:.4g} s", f"mean wait in steady state ({model})")
        yield Figure("mean_waiting_jobs", line, "jobs", f"{line:.4g}", f"mean number of waiting jobs ({model})")
        yield Figure(
            "chance_to_wait_half_a_second", half, "probability", f"{half:.3g}", f"a wait above 0.5 s ({model})"
        )
        if self.work.cv2 != 1 or self.ask.arrival_cv2 != 1:
            guess = estimated_wait_seconds(wait, float(self.ask.arrival_cv2), float(self.work.cv2))
            yield Figure(
                "estimated_mean_wait_seconds", guess, "s", f"about {guess:.3g} s",
                "the same for the spread that was given (Allen-Cunneen): an estimate, good near saturation only",
            )  # fmt: skip

    def _statements(self, heartbeat: Fraction) -> Figure:
        draining = statements_per_second(
            self.capacity.per_second, self.ask.batch, busy_slots=Fraction(self.slots), heartbeat_seconds=heartbeat
        )
        return Figure(
            "statements_per_second_while_draining", draining, "statements/s", _per_second(draining),
            f"claims of {self.ask.batch}, a completion each, and a renewal per busy slot every {q.say_seconds(heartbeat)}",
        )  # fmt: skip

    def _outage(self, outage: Fraction, result: Drain, band: Band | None) -> Iterator[Figure]:
        ask = self.ask
        backlog = backlog_jobs(ask.arrival_per_second, outage)
        yield Figure(
            "backlog_jobs", backlog, "jobs", q.say_number(backlog),
            f"what has piled up: {_per_second(ask.arrival_per_second)} × {q.say_seconds(outage)} of outage",
        )  # fmt: skip
        if result.seconds is None:
            yield Figure(
                "drain_seconds", None, "s", NEVER,
                f"the sustained {_per_second(self.capacity.per_second)} ({self.capacity.of}) are not above the "
                f"{_per_second(self.lasting)} that arrive, so the backlog stays or grows",
            )  # fmt: skip
        else:
            yield Figure(
                "drain_seconds", result.seconds, "s", q.say_seconds(result.seconds),
                "from recovery until the backlog is gone, inflow going on: backlog ÷ net drain"
                + (", step by step as the inflow changes" if ask.inflow else ""),
            )  # fmt: skip
        if band is not None:
            low, high = band.limits
            kind = "inverse-Gaussian, as the spread is wide" if band.is_skewed else "normal"
            told = f"where {band.confidence:.0%} of such drains end by chance alone ({kind}; spread of arrivals and of work)"
            yield Figure("drain_band_low_seconds", low, "s", f"{low:.1f} s", told)
            yield Figure("drain_band_high_seconds", high, "s", f"{high:.1f} s", told)
            yield Figure(
                "drain_sd_seconds",
                band.sd_seconds,
                "s",
                f"{band.sd_seconds:.2f} s",
                "standard deviation of the drain time",
            )
        wait = wait_of_job_at_recovery(self._backlog(self.capacity), self.capacity.per_second)
        yield Figure(
            "wait_of_job_at_recovery_seconds", wait, "s", q.say_seconds(wait),
            "wait of the job that arrives at the instant of recovery: backlog ÷ capacity. It is not the drain time: "
            "jobs that arrive later queue behind it",
        )  # fmt: skip
        load = ask.arrival_per_second * self.work.mean_seconds
        rerun = rerun_jobs(load, self.slots)
        yield Figure(
            "rerun_jobs",
            rerun,
            "jobs",
            q.say_number(rerun),
            "in flight when the workers die, on average: they run again",
        )
        if result.seconds is not None:
            again = drain_with_inflow(result.backlog_jobs + rerun, self.capacity.per_second, self.inflow)
            if again.seconds is not None:
                yield Figure(
                    "drain_with_reruns_seconds", again.seconds, "s", q.say_seconds(again.seconds),
                    "the drain with those re-runs counted",
                )  # fmt: skip

    def _ageing(self, outage: Fraction) -> Iterator[Figure]:
        limit = self.ask.age_seconds
        if limit is None or self.ask.inflow:
            return
        rates = (self.capacity.per_second, self.ask.arrival_per_second)
        until = seconds_until_age(outage, *rates, limit)
        late = jobs_that_wait_longer(outage, *rates, limit)
        yield Figure(
            "seconds_until_age", until, "s", "never" if until is None else q.say_seconds(until),
            f"from recovery until the oldest runnable job is younger than {q.say_seconds(limit)}",
        )  # fmt: skip
        yield Figure(
            "jobs_that_wait_longer", late, "jobs", "all from then on" if late is None else q.say_number(late),
            f"jobs that wait more than {q.say_seconds(limit)} because of the outage",
        )  # fmt: skip

    def _recovery(self) -> Iterator[Figure]:
        ask = self.ask
        recovery = ask.recovery_seconds
        if recovery is None:
            return
        longest = survivable_outage_seconds(self.capacity.per_second, ask.arrival_per_second, recovery)
        yield Figure(
            "survivable_outage_seconds", longest, "s", q.say_seconds(longest),
            f"longest outage after which {self.slots} slots are current again within {q.say_seconds(recovery)}",
        )  # fmt: skip
        if ask.outage_seconds is None:
            return
        needed = capacity_for_recovery(ask.arrival_per_second, ask.outage_seconds, recovery)
        yield Figure(
            "capacity_for_recovery_per_second", needed, "jobs/s", _per_second(needed),
            f"what must be sustained to be current again within {q.say_seconds(recovery)} of the end of the outage; "
            "order when the measured capacity's lower bound is below it",
        )  # fmt: skip
        slots = slots_for_recovery(ask.arrival_per_second, self.work.mean_seconds, ask.outage_seconds, recovery)
        short = [other for other in self.ceilings if other.of != "slots" and other.per_second < needed]
        if short:
            yield Figure(
                "slots_for_recovery", None, "slots", "no number of slots",
                f"the {short[0].of} allows {_per_second(short[0].per_second)}, less than is needed: raise it first",
            )  # fmt: skip
        else:
            yield Figure(
                "slots_for_recovery", slots, "slots", str(slots),
                f"slots for that recovery time: needed rate × {q.say_seconds(self.work.mean_seconds)} of slot time per job",
            )  # fmt: skip

    def _batch(self) -> Iterator[Figure]:
        if self.ask.batch == 1:
            return
        local = local_wait(self.ask.batch, self.attempt.mean_seconds)
        held = f"a worker that claims {self.ask.batch} at once and runs them one after another"
        yield Figure(
            "local_wait_mean_seconds", local.mean_seconds, "s", q.say_seconds(local.mean_seconds),
            f"mean wait of a claimed job in the memory of {held}",
        )  # fmt: skip
        yield Figure(
            "local_wait_longest_seconds", local.longest_seconds, "s", q.say_seconds(local.longest_seconds),
            "the last of the batch; by so much earlier the table looks empty than the work is started",
        )  # fmt: skip
        yield Figure(
            "shortest_lease_seconds", local.lease_seconds, "s", q.say_seconds(local.lease_seconds),
            "a lease that is not renewed must last longer than the whole batch takes on average",
        )  # fmt: skip

    def _terms(self, outage: Fraction) -> Iterator[Term]:
        """Nominal first, then each thing that was asked about added to those before it."""
        ask = self.ask
        service, overhead, retries = Times(ask.service_seconds, ask.service_cv2), Fraction(0), Retries()
        backlog = backlog_jobs(ask.arrival_per_second, outage)

        def term(name: str, *, outside: bool = False) -> Term:
            ceiling = lowest(self._ceilings(retries, retries.work(service, overhead), outside=outside))
            result = drain_with_inflow(self._backlog(ceiling) if outside else backlog, ceiling.per_second, self.inflow)
            return Term(name, ceiling, result.net_per_second, result.seconds)

        yield term("nominal: slots and mean service time")
        if ask.slow is not None:
            service = self.attempt
            share = q.say_number(ask.slow.share * 100)
            yield term(f"slow jobs: {share} % take {q.say_seconds(ask.slow.seconds)}")
        if ask.retry_share:
            retries = self.retries
            yield term(f"retries: {q.say_number(ask.retry_share * 100)} % of attempts fail")
        if ask.overhead_seconds:
            overhead = ask.overhead_seconds
            yield term(f"database overhead: {q.say_seconds(overhead)} per attempt")
        if ask.limit_per_second is not None or ask.database_per_second is not None:
            yield term("limits outside the slots", outside=True)

    def _ages(self, outage: Fraction, result: Drain) -> Iterator[AgePoint]:
        """At quarters of the drain; when it never drains, at quarters of an outage's length, to show that it grows."""
        span = outage if result.seconds is None else result.seconds
        for quarter in range(AGE_POINTS + 1):
            after = span * quarter / AGE_POINTS
            at_once = backlog_jobs(self.ask.arrival_per_second, outage) - self._backlog(self.capacity)
            age = oldest_age_with_inflow(
                outage, self.capacity.per_second, self.ask.arrival_per_second, self.inflow, after, at_once_jobs=at_once
            )
            yield AgePoint(after, age)

    def _mistake(self, outage: Fraction, result: Drain) -> str:
        backlog = backlog_jobs(self.ask.arrival_per_second, outage)
        rate = self.capacity.per_second
        wrong = wait_of_job_at_recovery(backlog, rate)
        wait = wait_of_job_at_recovery(self._backlog(self.capacity), rate)
        right = NEVER if result.seconds is None else f"takes {q.say_seconds(result.seconds)}"
        return (
            f"Dividing the backlog by the capacity, {q.say_number(backlog)} ÷ {q.say_number(rate)} = {q.say_seconds(wrong)}, is not "
            f"the drain time: work keeps arriving at {_per_second(self.lasting)} meanwhile, and the backlog "
            f"{right}. {q.say_seconds(wait)} is how long the job waits that arrives at the instant of recovery."
        )

    def _notes(self, result: Drain | None, band: Band | None) -> Iterator[str]:
        ask = self.ask
        yield "Slots are not CPU cores, and connections are neither: each is ordered by its own measurement."
        if ask.service_seconds < SHORT_SERVICE:
            yield (
                f"A service time of {q.say_seconds(ask.service_seconds)} is shorter than the database needs for a claim and a "
                "completion (1 to 3 ms): check the unit, and measure the overhead before trusting any number here."
            )
        if ask.outage_seconds is None:
            yield "No outage was given, so nothing is said about a backlog; add one, such as 300s."
            return
        if backlog_jobs(ask.arrival_per_second, ask.outage_seconds) < SMALL_BACKLOG * self.slots:
            yield (
                f"The backlog is less than {SMALL_BACKLOG} jobs per slot: drain and band are rough, single jobs and the state of the "
                "slots matter. Simulate, or take a longer outage."
            )
        if ask.inflow:
            yield "Inflow changes after recovery: age and drain follow its steps; survivable outage and slots for a recovery time take the arrival rate."
        if self.capacity.of == "external limit":
            yield (
                "The external limit binds: more slots drain nothing faster. Slots that wait for the limiter look 100 % busy; "
                "look at time blocked on it apart from time at work."
            )
        if band is None or result is None or result.net_per_second <= 0:
            return
        jobs = jobs_for_precision(self.capacity.per_second, result.net_per_second, Fraction(5, 100))
        yield f"One run tells its drain time to ± 5 % only with a backlog of {jobs} jobs or more (exponential work)."
        window = judging_window_seconds(
            self.capacity.per_second - result.net_per_second, self.capacity.per_second, ask.arrival_cv2, self.work.cv2
        )
        if window is not None:
            yield f"Whether the backlog falls at all must be watched for {window:.1f} s before it stands out from noise."
