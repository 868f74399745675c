"""What a run says, computed from its trace alone: the measured drain beside theory, band and replay, and what separates them.

Everything is in seconds of the run, which a time scale has compressed; ``Measured.scaled`` says by how much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from harness.capacity.band import Band, drain_band
from harness.capacity.drain import Drain, drain
from harness.capacity.mix import Times as ServiceTimes
from harness.capacity.mix import mix
from harness.capacity.replay import TOLERANCE, Replay
from harness.capacity.replay import Trace as ReplayTrace
from harness.capacity.simulation import Attempt as ReplayAttempt
from harness.capacity.simulation import Job, Limiter, Outage, Path, walk_attempts
from harness.load.measured import Measured
from harness.load.schedule import Times
from harness.load.trace import Attempt

OVERHEAD_SHARE = 0.3  # of the drain: the overhead is measured in its first part, and must explain the rest
LEAST_ATTEMPTS = 50
BATCHES = 8
MOST_DRAIN_ERROR = 0.1  # with the overhead known no better, a replay explains nothing
Z = 1.96


@dataclass(frozen=True)
class Rates:
    """What the run's parts were, measured."""

    arrival_per_second: float
    service_seconds: float
    service_cv2: float
    failed_share: float
    attempts_per_job: float
    overhead_seconds: float  # slot time per attempt besides the call
    overhead_error_seconds: float  # its standard error
    overhead_attempts: int  # that it was measured on; 0: too few
    completion_per_second: float  # while draining
    completion_low_per_second: float  # its lower 95 % bound

    @property
    def work_seconds(self) -> float:
        """Slot time of a whole job."""
        return self.attempts_per_job * (self.service_seconds + self.overhead_seconds)


@dataclass(frozen=True)
class Term:
    """One named reason why measured and predicted differ; what remains is the last one."""

    name: str
    seconds: float
    told: str


@dataclass(frozen=True)
class Slope:
    """How fast the backlog fell, and whether that stands out from noise."""

    per_second: float  # jobs; positive: it falls
    low: float
    high: float
    over_seconds: float

    @property
    def falls(self) -> bool | None:
        """None: cannot be told from noise."""
        return True if self.low > 0 else False if self.high < 0 else None


@dataclass(frozen=True)
class Analysis:
    """The answers."""

    drained_seconds: float | None  # from the order to start again until no more is unstarted than usual
    current_seconds: float | None  # until everything is back within the steady phase's values
    start_up_seconds: float | None  # until the first call came
    backlog_jobs: int  # at the first call
    killed: int
    rates: Rates
    nominal: Drain
    nominal_band: Band | None
    realised: Drain
    realised_band: Band | None
    replay: Replay | None
    terms: tuple[Term, ...]
    slope: Slope | None
    wait_at_recovery_seconds: float | None
    executions: int  # successful calls
    repeated: int  # jobs that were called successfully more than once

    @property
    def predicted_seconds(self) -> float | None:
        """Fluid with the measured rates, the start-up in front."""
        if self.realised.seconds is None:
            return None
        return float(self.realised.seconds) + (self.start_up_seconds or 0.0)


def analyse(run: Measured) -> Analysis:
    """Everything at once."""
    phases = run.phases
    recovery = phases.recovery_began
    answered = [attempt for attempt in run.attempts if attempt.answered]
    after = [attempt.called for attempt in run.attempts if attempt.called >= recovery]
    first = min(after, default=None)
    starts = run.starts
    left = _left_backlog(run)
    drained = _drained_at(run.dues, left, recovery if first is None else first, phases.ended, run.steady.usual)
    drained_seconds = None if drained is None else drained - recovery
    end = phases.ended if drained is None else drained
    began = recovery if first is None else first
    backlog = int(np.count_nonzero((run.dues <= began) & (left >= began)))
    rates = _rates(run, began, end, backlog)
    nominal, nominal_band = _nominal(run)
    to_drain = Fraction(max(backlog - run.steady.usual, 0))
    realised = drain(to_drain, _exact(run.plan.slots / rates.work_seconds), _exact(rates.arrival_per_second))
    limited = _limited(run, rates)
    if limited is not None and limited < run.plan.slots / rates.work_seconds:
        realised = drain(to_drain, _exact(limited), _exact(rates.arrival_per_second))
    band = None
    if backlog >= run.plan.slots:
        # The backlog is known here, so only the luck after recovery is left in the band.
        band = drain_band(realised, Fraction(0), work_cv2=_exact(rates.service_cv2 if limited is None else 0.0))
    replayed = _replay(run, began, drained, rates)
    if replayed is not None and _could_be_the_overhead(run, rates, replayed):
        rates = replace(rates, overhead_attempts=0)
    start_up = None if first is None else first - recovery
    return Analysis(
        drained_seconds=drained_seconds,
        # Within the steady phase's worst values it may be a moment before it is down to the usual ones.
        current_seconds=None
        if phases.current_at is None
        else max(phases.current_at - recovery, drained_seconds or 0.0),
        start_up_seconds=start_up,
        backlog_jobs=backlog,
        killed=sum(not attempt.answered for attempt in run.attempts if attempt.called < recovery),
        rates=rates,
        nominal=nominal,
        nominal_band=nominal_band,
        realised=realised,
        realised_band=band,
        replay=replayed,
        terms=tuple(_terms(run, drained_seconds, start_up or 0.0, backlog, rates, nominal, realised)),
        slope=_slope(run, began, end, left, rates),
        wait_at_recovery_seconds=_wait_at(run, starts, recovery),
        executions=sum(attempt.status is not None and attempt.status < 400 for attempt in answered),
        repeated=_repeated(answered),
    )


def _left_backlog(run: Measured) -> Times:
    """Per job when it stopped waiting: by its first answered call, or because it was given up without one."""
    left = run.starts.copy()
    for job, at in run.given_up.items():
        left[job] = min(left[job], at)
    return left


def _exact(value: float) -> Fraction:
    return Fraction(value).limit_denominator(10**9)


def _drained_at(dues: Times, starts: Times, after: float, ended: float, most: int) -> float | None:
    """The first instant from ``after`` on at which at most ``most`` due jobs are unstarted; None: not before ``ended``."""
    arrived, begun = np.sort(dues[dues <= ended]), np.sort(starts[starts <= ended])
    instants = np.concatenate([[after], begun[begun > after]])  # the count falls only when one starts
    unstarted = np.searchsorted(arrived, instants, side="right") - np.searchsorted(begun, instants, side="right")
    drained = np.flatnonzero(unstarted <= most)
    return float(instants[drained[0]]) if len(drained) else None


def _rates(run: Measured, began: float, end: float, backlog: int) -> Rates:
    answered = [attempt for attempt in run.attempts if attempt.answered]
    held = (
        np.array([attempt.held_seconds for attempt in answered]) if answered else np.array([run.scaled.service_seconds])
    )
    failed = sum(attempt.status is not None and attempt.status >= 400 for attempt in answered)
    share = failed / len(answered) if answered else 0.0
    ended = int(np.searchsorted(run.dues, run.phases.ended, side="right"))
    steady = run.phases.steady_began if run.plan.ramp is not None else 0.0
    counted = ended - int(np.searchsorted(run.dues, steady, side="right"))
    span = max(run.phases.ended - steady, 1e-9)
    completed = [attempt.ended for attempt in answered if began <= attempt.ended <= end and _good(attempt.status)]
    rate = len(completed) / max(end - began, 1e-9)
    mean = float(held.mean())
    cv2 = float(held.var() / mean**2) if len(held) > 1 and mean else 0.0
    overhead, error, attempts = _overhead(run, began, end) if slots_were_full(run, backlog) else (0.0, 0.0, 0)
    # Renewal theory: the variance of a count is its mean times the squared variation of the gaps.
    low = rate - Z * math.sqrt(max(cv2, 0.1) * max(rate, 1e-9) / max(end - began, 1e-9))
    rates = Rates(
        arrival_per_second=counted / span,
        service_seconds=mean,
        service_cv2=cv2,
        failed_share=share,
        attempts_per_job=1 / (1 - share) if share < 1 else math.inf,
        overhead_seconds=overhead,
        overhead_error_seconds=error,
        overhead_attempts=attempts,
        completion_per_second=rate,
        completion_low_per_second=max(low, 0.0),
    )
    if _drain_error(run, rates) > MOST_DRAIN_ERROR:
        rates = replace(rates, overhead_attempts=0)  # so uncertain that it would explain any drain
    return rates


def _could_be_the_overhead(run: Measured, rates: Rates, replayed: Replay) -> bool:
    """Whether what the replay leaves over is no more than the overhead is known: that neither clears nor blames the system."""
    if replayed.residual is None or replayed.explained is not False:
        return False
    return abs(replayed.residual) <= TOLERANCE + _drain_error(run, rates)


def _drain_error(run: Measured, rates: Rates) -> float:
    """The share by which a predicted drain may be wrong (95 %) because the overhead is known no better.

    T = B/(μ − λ), so an error of a job's slot time is amplified by μ/(μ − λ): near saturation little is known.
    """
    capacity, limited = run.plan.slots / rates.work_seconds, _limited(run, rates)
    if limited is not None and limited < capacity:
        return 0.0  # then it is the limiter that paces
    if capacity <= rates.arrival_per_second:
        return math.inf if rates.overhead_error_seconds else 0.0
    amplified = capacity / (capacity - rates.arrival_per_second)
    return Z * rates.overhead_error_seconds / (rates.service_seconds + rates.overhead_seconds) * amplified


def slots_were_full(run: Measured, backlog: int) -> bool:
    """Whether every slot had work while draining. After an outage of the sink jobs wait for their backoff, not for slots."""
    return backlog >= run.plan.slots and run.plan.outage != "sink"


def _good(status: int | None) -> bool:
    return status is not None and status < 400


def _overhead(run: Measured, began: float, end: float) -> tuple[float, float, int]:
    """Slot time per attempt besides the call, in the first part of the drain, when every slot has work to do; its standard
    error, by batch means; and the attempts that it was measured on.

    There c·Δt of slot time is there; what calls did not use is claiming, completing, waking up and waiting for either. The
    limiter holds the call open, so its wait counts as the call's. Measured in the first part only, so that the replay of the
    rest can be wrong.
    """
    until = began + OVERHEAD_SHARE * (end - began)
    up = max(_first_calls(run, began).values(), default=began)  # until all workers are, it is no overhead
    began = min(up, until)
    called = np.array([attempt.called for attempt in run.attempts])
    ended = np.array([attempt.ended for attempt in run.attempts])
    answered = np.array([attempt.answered for attempt in run.attempts], dtype=bool)

    def window(start: float, stop: float) -> tuple[float, int]:
        used = float(np.clip(np.minimum(ended, stop) - np.maximum(called, start), 0.0, None).sum())
        count = int(np.count_nonzero(answered & (ended >= start) & (ended < stop)))
        return (run.plan.slots * (stop - start) - used) / max(count, 1), count

    overhead, count = window(began, until)
    if count < LEAST_ATTEMPTS:
        return 0.0, 0.0, 0
    edges = np.linspace(began, until, BATCHES + 1).tolist()
    means = [window(start, stop)[0] for start, stop in pairwise(edges)]
    return max(overhead, 0.0), float(np.std(means, ddof=1) / math.sqrt(BATCHES)), count


def _first_calls(run: Measured, began: float) -> dict[int, float]:
    """Each worker's, from ``began`` on."""
    first: dict[int, float] = {}
    for attempt in run.attempts:
        if attempt.called >= began:
            first[attempt.worker] = min(first.get(attempt.worker, attempt.called), attempt.called)
    return first


def _limited(run: Measured, rates: Rates) -> float | None:
    if run.plan.limit_per_second is None:
        return None
    return run.scaled.rate(run.plan.limit_per_second) / rates.attempts_per_job


def _nominal(run: Measured) -> tuple[Drain, Band | None]:
    assert run.answer.drain is not None
    return run.answer.drain, run.answer.band


def _replay(run: Measured, began: float, drained: float | None, rates: Rates) -> Replay | None:
    """The trace walked again: its arrivals, its durations, the overhead of the drain's beginning; None: it cannot say.

    After an outage of the sink jobs wait for their backoff, and of that the trace knows nothing.
    """
    if run.plan.outage == "sink" or run.plan.stuck_head is not None:
        return None
    per_job: dict[int, list[tuple[float, float, float, bool]]] = {}
    for attempt in sorted(run.attempts, key=lambda each: each.called):
        if attempt.answered:
            per_job.setdefault(attempt.job, []).append(
                (attempt.called, attempt.ended, attempt.held_seconds, _good(attempt.status))
            )
    backoff = run.scaled.backoff_seconds
    jobs = []
    for job, calls in sorted(per_job.items()):
        attempts = []
        for n, (_, ended, held, good) in enumerate(calls):
            again = None
            if not good and n + 1 < len(calls):
                again = min(calls[n + 1][0] - ended, backoff * 2**n)
            attempts.append(ReplayAttempt(held, again))
            if good:
                break
        jobs.append(Job(float(run.dues[job]), tuple(attempts)))
    limiter = None
    if run.plan.limit_per_second is not None:
        limiter = Limiter(run.scaled.rate(run.plan.limit_per_second), run.plan.limit_burst)
    firsts = list(_first_calls(run, began).values())
    # Slots are spread evenly over the workers: at the mean first call as much of their time was lost as really was.
    up = sum(firsts) / len(firsts) if firsts else began
    trace = ReplayTrace(jobs, run.plan.slots, Outage(run.phases.outage_began, up), rates.overhead_seconds, limiter)
    path = _first_attempts(
        walk_attempts(
            trace.jobs, trace.slots, outages=(trace.outage,), limiter=limiter, overhead_seconds=trace.overhead_seconds
        )
    )
    measured = None if drained is None else drained - began
    again = _drained_at(np.array(path.dues), np.array(path.claims), began, math.inf, run.steady.usual)
    replayed = None if again is None else again - began
    return Replay(path, measured, replayed, run.scaled.service_seconds)


def _first_attempts(path: Path) -> Path:
    """Only the first row of each job: retries wait for their backoff, and are no backlog."""
    first: dict[int, int] = {}
    for n, job in enumerate(path.jobs):
        first.setdefault(job, n)
    keep = sorted(first.values())
    dues, claims, starts, finishes = (
        [column[n] for n in keep] for column in (path.dues, path.claims, path.starts, path.finishes)
    )
    return Path([path.jobs[n] for n in keep], dues, claims, starts, finishes, path.killed, path.outages)


def _terms(
    run: Measured,
    drained: float | None,
    start_up: float,
    backlog: int,
    rates: Rates,
    nominal: Drain,
    realised: Drain,
) -> Sequence[Term]:
    """From the nominal fluid to the measured time, one thing after another; the order matters a little, the sum does not."""
    if nominal.seconds is None or drained is None or realised.seconds is None:
        return []
    ask = run.scaled.question()
    slots, service = run.plan.slots, float(mix(ServiceTimes(ask.service_seconds), ask.slow).mean_seconds)
    tries = 1 / (1 - float(ask.retry_share))
    lasting = float(ask.arrival_per_second)
    steps: list[tuple[str, float, float, float, str]] = []
    nominal_capacity = float(nominal.capacity_per_second)
    steps.append(
        ("backlog", backlog, nominal_capacity, lasting, f"{backlog} jobs instead of {float(nominal.backlog_jobs):.0f}")
    )
    steps.append(
        (
            "arrivals",
            backlog,
            nominal_capacity,
            rates.arrival_per_second,
            f"{rates.arrival_per_second:.2f}/s instead of {lasting:.2f}/s",
        )
    )
    limited = _limited(run, rates)
    most = math.inf if limited is None else limited
    capacity = min(slots / (rates.service_seconds * rates.attempts_per_job), most)
    shown = (
        f"{rates.service_seconds * 1000:.1f} ms instead of {service * 1000:.1f} ms on average,"
        f" {rates.attempts_per_job:.3f} attempts per job instead of {tries:.3f}"
    )
    steps.append(("service times and retries", backlog, capacity, rates.arrival_per_second, shown))
    shown = f"{rates.overhead_seconds * 1000:.2f} ms of slot time per attempt for claiming, completing and waking"
    steps.append(("overhead", backlog, min(slots / rates.work_seconds, most), rates.arrival_per_second, shown))
    terms, before = [], float(nominal.seconds)
    for name, jobs, capacity, arrivals, told in steps:
        net = capacity - arrivals
        if net <= 0:
            return []
        terms.append(Term(name, jobs / net - before, told))
        before = jobs / net
    terms.append(Term("start-up", start_up, "from the order to start again until the first call came"))
    terms.append(
        Term(
            "chance and the rest",
            drained - start_up - before,
            "order of arrivals and durations, and what no part explains",
        )
    )
    return terms


def _slope(run: Measured, began: float, end: float, starts: Times, rates: Rates) -> Slope | None:
    over = end - began
    if over <= 0:
        return None

    def backlog(at: float) -> int:
        return int(np.count_nonzero((run.dues <= at) & (starts > at)))

    fell = (backlog(began) - backlog(end)) / over
    noise = math.sqrt((rates.arrival_per_second + rates.service_cv2 * max(rates.completion_per_second, 1e-9)) / over)
    return Slope(fell, fell - Z * noise, fell + Z * noise, over)


def _wait_at(run: Measured, starts: Times, recovery: float) -> float | None:
    """The wait of the first job that became due after recovery."""
    n = int(np.searchsorted(run.dues, recovery))
    return float(starts[n] - run.dues[n]) if n < len(starts) and math.isfinite(starts[n]) else None


def _repeated(answered: Sequence[Attempt]) -> int:
    good = [attempt.job for attempt in answered if _good(attempt.status)]
    _, counts = np.unique(np.array(good, dtype=np.int64), return_counts=True)
    return int(np.count_nonzero(counts > 1))
