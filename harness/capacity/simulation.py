"""One path of a queue, job by job: slots, FIFO by due time, outages with kill and re-run, retries, a rate limit.

The Kiefer-Wolfowitz recursion: a job starts when it is due, a slot is free and the limiter lets it. Given the arrivals and
the service times nothing is random, so the same code predicts an imagined run and replays a recorded one. ``walk`` is the fast
one for jobs of a single attempt; ``walk_attempts`` also knows retries. Seconds throughout, on the run's own clock.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace


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
        for n in range(first, len(claims) - 1):
            if dues[n + 1] > claims[n]:
                return claims[n]
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
    claims = [0.0] * len(dues)
    starts = claims if limiter is None else [0.0] * len(dues)
    finishes = [0.0] * len(dues)
    line: Sequence[int] = range(len(dues))
    order: list[int] = []
    killed: list[Killed] = []
    free = [min(0.0, dues[0]) if dues else 0.0] * slots
    gate = _Gate(limiter)
    for outage in outages:
        stop = outage.start_seconds
        done = _serve(line, dues, durations, free, gate, overhead_seconds, stop, claims, starts, finishes)
        lost = [n for n in line[:done] if finishes[n] > stop]
        killed += [Killed(n, claims[n], stop) for n in lost]
        order += [n for n in line[:done] if finishes[n] <= stop]
        line = [*lost, *line[done:]]
        free = [outage.end_seconds] * slots
    _serve(line, dues, durations, free, gate, overhead_seconds, None, claims, starts, finishes)
    if not outages:
        return Path(line, dues, claims, starts, finishes)
    order += line
    columns = [[column[n] for n in order] for column in (dues, claims, starts, finishes)]
    return Path(order, *columns, killed=tuple(killed), outages=tuple(outages))


def _serve(
    line: Sequence[int],
    dues: Sequence[float],
    durations: Sequence[float],
    free: list[float],
    gate: "_Gate",
    overhead: float,
    stop: float | None,
    claims: list[float],
    starts: list[float],
    finishes: list[float],
) -> int:
    """Serve the line in order until a claim would fall on or after ``stop``; how many were claimed."""
    replace = heapreplace  # local names: this loop is the whole cost of a simulation
    if gate.limiter is None:
        for done, n in enumerate(line):
            earliest = free[0]
            due = dues[n]
            claim = due if due > earliest else earliest
            if stop is not None and claim >= stop:
                return done
            claims[n] = claim
            finishes[n] = finish = claim + (durations[n] + overhead)
            replace(free, finish)
        return len(line)
    for done, n in enumerate(line):
        claim = max(dues[n], free[0])
        if stop is not None and claim >= stop:
            return done
        claims[n] = claim
        starts[n] = gate.passes(claim, stop)
        finishes[n] = starts[n] + (durations[n] + overhead)
        replace(free, finishes[n])
    return len(line)


class _Gate:
    """A limiter's memory, as the generic cell rate algorithm: the time at which the next call would be on schedule."""

    def __init__(self, limiter: Limiter | None) -> None:
        self.limiter = limiter
        self.spacing = 1 / limiter.per_second if limiter else 0.0
        self.credit = self.spacing * (limiter.burst - 1) if limiter else 0.0
        self.schedule = float("-inf")

    def passes(self, at: float, stop: float | None = None) -> float:
        """When a call that is ready at ``at`` may go out; a slot killed while it waits has used no call."""
        start = max(at, self.schedule - self.credit)
        if stop is None or start < stop:
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
        stop = outage.start_seconds if outage else None
        start = gate.passes(claim, stop)
        finish = start + (attempt.seconds + overhead_seconds)
        heapreplace(free, finish)
        if stop is not None and finish > stop:
            lost.append((due, n, tried))
            killed.append(Killed(n, claim, stop))
            continue
        rows.append((n, due, claim, start, finish))
        if attempt.retry_after_seconds is not None and tried + 1 < len(jobs[n].attempts):
            heappush(waiting, (finish + attempt.retry_after_seconds, n, tried + 1))
    ids = [row[0] for row in rows]
    columns = [[row[k] for row in rows] for k in range(1, 5)]
    return Path(ids, *columns, killed=tuple(killed), outages=tuple(outages))


def _check(dues: Sequence[float], slots: int, outages: Sequence[Outage]) -> None:
    if slots < 1:
        raise ValueError("a queue without slots serves nobody")
    if any(later < earlier for earlier, later in zip(dues, dues[1:], strict=False)):
        raise ValueError("due times must be sorted: FIFO is by due time")
    ends = float("-inf")
    for outage in outages:
        if outage.start_seconds < ends or outage.end_seconds < outage.start_seconds:
            raise ValueError("outages must follow one another, each ending after it began")
        ends = outage.end_seconds
