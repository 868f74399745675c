"""Jobs that keep coming while a drill goes on, and how many of them wait: the backlog, and the age of its oldest job."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Container, Iterable
from typing import TYPE_CHECKING

import psycopg

from harness.contracts.problem import SubjectFailed
from harness.contracts.subject import State
from harness.history.events import Answered, Called, Enqueued, Entry, Moved, Waited
from harness.history.recorder import DeadlinePassed
from harness.invariants.backlog_recovers import RECOVERY

if TYPE_CHECKING:
    from harness.lab.lab import Lab

_LOOK_SECONDS = 0.05
_STEADY_SECONDS = 0.5
_FRESH_SECONDS = 1.0


class Inflow:
    """A producer, and what is known of its jobs. An enqueue that was not acknowledged is not counted, and not repeated."""

    def __init__(self, lab: "Lab", jobs_per_second: float) -> None:
        self._lab = lab
        self._every_seconds = 1 / jobs_per_second
        self._waiting: dict[str, int] = {}  # acknowledged and not ended, and when
        self._ended: dict[str, str] = {}  # and as what
        self._calls: dict[int, tuple[int, str]] = {}  # at the sink now: worker and key
        self.acknowledged: list[str] = []
        self.refused = 0
        self.normal_jobs = 0
        self.normal_seconds = 0.0
        lab.recorder.subscribe(self._follow)

    def _follow(self, entry: Entry) -> None:
        what = entry.what
        if isinstance(what, Enqueued):
            self.acknowledged.append(what.key)
            if what.key not in self._ended:
                self._waiting[what.key] = entry.t
        elif isinstance(what, Moved) and what.key is not None and what.new is not None:
            if State(what.new.state).ended:
                self._ended[what.key] = what.new.state
                self._waiting.pop(what.key, None)
            elif what.key in self._ended:
                del self._ended[what.key]
                self._waiting[what.key] = entry.t
        elif isinstance(what, Called):
            self._calls[what.call] = what.worker, what.key
        elif isinstance(what, Answered):
            self._calls.pop(what.call, None)

    @property
    def backlog(self) -> int:
        """How many acknowledged jobs have not ended."""
        return len(self._waiting)

    @property
    def ended(self) -> int:
        """How many have."""
        return len(self._ended)

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest of them has waited."""
        first = min(self._waiting.values(), default=None)
        return 0.0 if first is None else (self._lab.recorder.now_ns() - first) / 1e9

    def told(self) -> str:
        """The state in a few words."""
        return f"backlog {self.backlog}, oldest {self.oldest_seconds:.1f} s, {fates_told(self._ended.values()) or 'none ended'}"

    @property
    def busy(self) -> dict[int, str]:
        """Workers that we have neither killed nor silenced and whose call is at the sink now, with a job that it is for."""
        able = {worker.number for worker in self._lab.workers if worker.idle_able}
        return {worker: key for worker, key in self._calls.values() if worker in able}

    async def somebody_calls(self, among: Container[int], within_seconds: float) -> None:
        """Wait until one of these workers is in a call, or the time is over."""
        with contextlib.suppress(DeadlinePassed):
            await self._lab.eventually(
                lambda: any(worker in among for worker in self.busy),
                within_seconds=within_seconds,
                reason="a worker to be in a call",
            )

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Jobs come for the time of a block."""
        producer = asyncio.get_running_loop().create_task(self._produce())
        try:
            yield
        finally:
            producer.cancel()
            await asyncio.wait([producer])
            if not producer.cancelled() and (error := producer.exception()) is not None:
                raise error

    async def _produce(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._lab.enqueue(1)
            except (psycopg.Error, SubjectFailed) as error:
                # A program that enqueues says that it failed, and not why; one that could do it before has met the fault.
                by_program = self._lab.subject.enqueue_sql is None and bool(self.acknowledged)
                if not by_program and not _is_outage(error):
                    raise
                self.refused += 1
            await asyncio.sleep(max(0.0, self._every_seconds - (time.monotonic() - began)))

    async def settle_in(self, seconds: float) -> None:
        """Wait until the first jobs have gone through, watch a calm while, and take its worst for normal."""
        await self._lab.eventually(
            lambda: self.ended and self.oldest_seconds < _FRESH_SECONDS,
            within_seconds=self._lab.takeover_seconds,
            reason="a queue that nobody hurts to work off its first jobs",
        )
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.normal_jobs = max(self.normal_jobs, self.backlog)
            self.normal_seconds = max(self.normal_seconds, self.oldest_seconds)
            await asyncio.sleep(_LOOK_SECONDS)

    async def recovered(self, budget_seconds: float) -> bool:
        """Wait, under inflow, until backlog and age are what they were when all was calm, and stay so for a moment.

        A job that came since must have ended, too: right after a short fault the backlog of a dead queue is still small.
        Whether that came within the budget is recorded, and judged later.
        """
        began = time.monotonic()
        before = len(self.acknowledged)
        calm_since: float | None = None
        jobs, seconds = self.normal_jobs + 2, self.normal_seconds * 2 + 0.5
        while True:
            now = time.monotonic()
            moves = any(key in self._ended for key in self.acknowledged[before:])
            if moves and self.backlog <= jobs and self.oldest_seconds <= seconds:
                calm_since = calm_since or now
                if now - calm_since >= _STEADY_SECONDS:
                    return self._record(calm_since - began, met=True)
            else:
                calm_since = None
            if now - began > budget_seconds + _STEADY_SECONDS:
                return self._record(now - began, met=False)
            await asyncio.sleep(_LOOK_SECONDS)

    def _record(self, seconds: float, *, met: bool) -> bool:
        idle = sum(worker.idle_able for worker in self._lab.workers)
        self._lab.recorder.record(Waited(RECOVERY, round(seconds, 3), idle, met))
        return met


def fates_told(states: Iterable[str]) -> str:
    """How many jobs ended as what, in words; "" when none did."""
    return ", ".join(
        f"{count} {state}" for state, count in sorted(Counter(states).items(), key=lambda pair: pair[0] != "done")
    )


def _is_outage(error: BaseException) -> bool:
    """Whether an enqueue failed because its connection, or the server, was away."""
    return isinstance(error, psycopg.OperationalError) or (error.__cause__ is not None and _is_outage(error.__cause__))
