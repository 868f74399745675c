"""One path of a queue, job by job: slots, FIFO by due time, outages with kill and re-run, retries, a rate limit.

The Kiefer-Wolfowitz recursion: a job starts when it is due, a slot is free and the limiter lets it. Given the arrivals and
the service times nothing is random, so the same code predicts an imagined run and replays a recorded one. ``walk`` is the fast
one for jobs of a single attempt; ``walk_attempts`` also knows retries. Seconds throughout, on the run's own clock.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import NamedTuple


@dataclass(frozen=True)
class Outage:
    """From ``start_seconds`` on no slot works, and what was running is lost; at ``end_seconds`` all slots are free again."""

    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Limiter:
    """Calls per second of the interface behind the workers: evenly spaced (``burst`` 1) or from a token bucket."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True)
class Attempt:
    """How long one attempt holds its slot; then done, or due again ``retry_after_seconds`` later."""

    seconds: float
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Job:
    """A job and its fate: the attempts it will take, the last without a retry."""

    due_seconds: float
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Killed:
    """An attempt that an outage ended. It is due again at once, with its old due time."""

    job: int
    claim: float
    at: float


@dataclass(frozen=True)
class Path:
    """What happened, a row per attempt that was not killed, in the order of its claim.

    A slot is held from ``claims`` to ``finishes`` and works from ``starts`` on: between the two it waits for the limiter.
    """

    jobs: Sequence[int]
    dues: Sequence[float]
    claims: Sequence[float]
    starts: Sequence[float]
    finishes: Sequence[float]
    killed: tuple[Killed, ...] = ()
    outages: tuple[Outage, ...] = ()

    def drained_at(self, after_seconds: float) -> float | None:
        """The first instant from ``after_seconds`` on at which nothing due is left unclaimed; None: not in this path."""
        claims, dues = self.claims, self.dues
        first = bisect_left(claims, after_seconds)
        if first < len(dues) and dues[first] > after_seconds:
            return after_seconds
        for claim, following in zip(islice(claims, first, None), islice(dues, first + 1, None), strict=False):
            if following > claim:
                return claim
        return None

    def drain_seconds(self) -> float | None:
        """From the end of the last outage until the backlog is gone; None: the path ends before that."""
        recovered = self.outages[-1].end_seconds
        drained = self.drained_at(recovered)
        return None if drained is None else drained - recovered

    def oldest_age_at(self, at_seconds: float) -> float:
        """Age of the oldest job that is due and not claimed at an instant, killed jobs included; 0 when there is none."""
        running = {lost.job for lost in self.killed if lost.claim <= at_seconds < lost.at}
        for n in range(bisect_right(self.claims, at_seconds), len(self.dues)):
            if self.jobs[n] not in running:
                return max(at_seconds - self.dues[n], 0.0)
        return 0.0

    def blocked_seconds(self) -> float:
        """Slot time spent waiting for the limiter: looks busy, does no work."""
        return sum(start - claim for start, claim in zip(self.starts, self.claims, strict=True))


def walk(
    dues: Sequence[float],
    durations: Sequence[float],
    slots: int,
    *,
    outages: Sequence[Outage] = (),
    limiter: Limiter | None = None,
    overhead_seconds: float = 0.0,
) -> Path:
    """Jobs of one attempt each, sorted by due time. A killed job runs again first, and takes as long as it would have."""
    _check(dues, slots, outages)
    if len(durations) != len(dues):
        raise ValueError("as many durations as due times, please")
    if overhead_seconds:
        durations = [seconds + overhead_seconds for seconds in durations]
    gate = _Gate(limiter)
    line = _Line(range(len(dues)), dues, durations)
    done = _Done([], [], [], [], [])
    killed: list[Killed] = []
    free = [min(0.0, dues[0]) if dues else 0.0] * slots
    for outage in outages:
        stop = outage.start_seconds
        claimed = line.serve(free, gate, stop)
        lost = [n for n, finish in enumerate(claimed.finishes) if finish > stop]
        killed += [Killed(line.jobs[n], claimed.claims[n], stop) for n in lost]
        done.add(claimed, without=set(lost))
        line = line.after(len(claimed.jobs), again=lost)
        free = [outage.end_seconds] * slots
    done.add(line.serve(free, gate, float("inf")), without=set())
    return Path(done.jobs, done.dues, done.claims, done.starts, done.finishes, tuple(killed), tuple(outages))


class _Done(NamedTuple):
    """Columns of attempts that have been claimed, in that order."""

    jobs: list[int]
    dues: list[float]
    claims: list[float]
    starts: list[float]
    finishes: list[float]

    def add(self, more: "_Done", without: set[int]) -> None:
        """Append the rows whose places are not in ``without``."""
        if without:
            keep = [n for n in range(len(more.jobs)) if n not in without]
            more = _Done([more.jobs[n] for n in keep], *([column[n] for n in keep] for column in more[1:]))
        self.jobs.extend(more.jobs)
        for mine, theirs in zip(self[1:], more[1:], strict=True):
            mine.extend(theirs)


class _Line(NamedTuple):
    """Jobs that wait or will come, in the order in which they are to be claimed."""

    jobs: Sequence[int]
    dues: Sequence[float]
    durations: Sequence[float]

    def after(self, count: int, again: list[int]) -> "_Line":
        """What is left after ``count`` claims, with the jobs at the places ``again`` in front."""
        jobs, dues, durations = self
        return _Line(
            [*(jobs[n] for n in again), *jobs[count:]],
            [*(dues[n] for n in again), *dues[count:]],
            [*(durations[n] for n in again), *durations[count:]],
        )

    def serve(self, free: list[float], gate: "_Gate", stop: float) -> _Done:
        """Claim in order until a claim would fall on or after ``stop``. ``free`` is a heap of when each slot gets free."""
        claims: list[float] = []
        finishes: list[float] = []
        if gate.limiter is not None:
            starts: list[float] = []
            for due, seconds in zip(self.dues, self.durations, strict=True):
                claim = max(due, free[0])
                if claim >= stop:
                    break
                start = gate.passes(claim, stop)
                heapreplace(free, start + seconds)
                claims.append(claim)
                starts.append(start)
                finishes.append(start + seconds)
        else:
            starts = claims
            claimed, finished, replace = claims.append, finishes.append, heapreplace  # this loop is the whole cost
            for due, seconds in zip(self.dues, self.durations, strict=True):
                claim = free[0]
                if due > claim:  # noqa: PLR1730  # a call of max() would cost a tenth of it
                    claim = due
                if claim >= stop:
                    break
                finish = claim + seconds
                replace(free, finish)
                claimed(claim)
                finished(finish)
        count = len(claims)
        return _Done(list(self.jobs[:count]), list(self.dues[:count]), claims, starts, finishes)


class _Gate:
    """A limiter's memory, as the generic cell rate algorithm: the time at which the next call would be on schedule."""

    def __init__(self, limiter: Limiter | None) -> None:
        self.limiter = limiter
        self.spacing = 1 / limiter.per_second if limiter else 0.0
        self.credit = self.spacing * (limiter.burst - 1) if limiter else 0.0
        self.schedule = float("-inf")

    def passes(self, at: float, stop: float) -> float:
        """When a call that is ready at ``at`` may go out; a slot killed while it waits has used no call."""
        start = max(at, self.schedule - self.credit)
        if start < stop:
            self.schedule = max(self.schedule, start) + self.spacing
        return start


def walk_attempts(
    jobs: Sequence[Job],
    slots: int,
    *,
    outages: Sequence[Outage] = (),
    limiter: Limiter | None = None,
    overhead_seconds: float = 0.0,
) -> Path:
    """Jobs with retries, sorted by due time: an attempt that fails frees its slot and is due again after its backoff.

    A retry's due time is never before that of what has been claimed already, so taking attempts in order of due time and
    giving each the first free slot is exact. A killed attempt keeps its due time and runs again.
    """
    _check([job.due_seconds for job in jobs], slots, outages)
    rows: list[tuple[int, float, float, float, float]] = []
    waiting: list[tuple[float, int, int]] = [(job.due_seconds, n, 0) for n, job in enumerate(jobs)]
    heapify(waiting)
    free = [min(0.0, jobs[0].due_seconds) if jobs else 0.0] * slots
    gate = _Gate(limiter)
    ahead: Iterator[Outage] = iter(outages)
    outage = next(ahead, None)
    lost: list[tuple[float, int, int]] = []  # in flight when the outage comes; back in line when it does
    killed: list[Killed] = []
    while waiting or lost:
        claim = max(waiting[0][0], free[0]) if waiting else float("inf")
        if outage is not None and claim >= outage.start_seconds:
            for entry in lost:
                heappush(waiting, entry)
            lost = []
            free = [outage.end_seconds] * slots
            outage = next(ahead, None)
            continue
        due, n, tried = heappop(waiting)
        attempt = jobs[n].attempts[tried]
        stop = outage.start_seconds if outage else float("inf")
        start = gate.passes(claim, stop)
        finish = start + (attempt.seconds + overhead_seconds)
        heapreplace(free, finish)
        if finish > stop:
            lost.append((due, n, tried))
            killed.append(Killed(n, claim, stop))
            continue
        rows.append((n, due, claim, start, finish))
        if attempt.retry_after_seconds is not None and tried + 1 < len(jobs[n].attempts):
            heappush(waiting, (finish + attempt.retry_after_seconds, n, tried + 1))
    ids = [row[0] for row in rows]
    dues, claims, starts, finishes = ([row[k] for row in rows] for k in range(1, 5))
    return Path(ids, dues, claims, starts, finishes, tuple(killed), tuple(outages))


def _check(dues: Sequence[float], slots: int, outages: Sequence[Outage]) -> None:
    if slots < 1:
        raise ValueError("a queue without slots serves nobody")
    if sorted(dues) != list(dues):
        raise ValueError("due times must be sorted: FIFO is by due time")
    ends = float("-inf")
    for outage in outages:
        if outage.start_seconds < ends or outage.end_seconds < outage.start_seconds:
            raise ValueError("outages must follow one another, each ending after it began")
        ends = outage.end_seconds
