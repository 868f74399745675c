"""The trace of a run: every job's intended time, every call that came for it, how long it was held and how it ended.

Kept in memory by the process that holds the sink, on its monotonic clock. Backlog and ages are read from it while the run
goes on, and exactly afterwards: a job counts as started from the call that was answered, not from one that died with its worker.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.history.events import Answered, AnyEvent, Applied, Called
from harness.load.schedule import Times

WAITING, IN_SERVICE, FAILED, DONE, GIVEN_UP = 0, 1, 2, 3, 4
DIGITS = 8


@dataclass(frozen=True)
class Attempt:
    """One call for one job, in seconds from the run's beginning. ``status`` None: its caller died or was cut off."""

    job: int
    worker: int
    called: float
    served: float  # past the limiter
    ended: float
    status: int | None

    @property
    def answered(self) -> bool:
        """Whether the caller got to know how it ended."""
        return self.status is not None

    @property
    def held_seconds(self) -> float:
        """How long the outside took for it, the limiter apart."""
        return self.ended - self.served


@dataclass(frozen=True)
class Look:
    """The queue at one instant, as jobs that are due and calls that have come say it."""

    at: float
    due: int
    unstarted: int
    oldest_unstarted_age: float
    in_service: int
    done: int
    unfinished: int
    oldest_unfinished: int | None
    oldest_unfinished_age: float


class Trace:
    """Told by the sink (as its recorder) and by the outside; asked by the phases and by the analysis."""

    def __init__(self, prefix: str, dues: Times, began: float) -> None:
        self.prefix = prefix
        self.dues = dues
        self.began = began  # monotonic
        self.attempts: list[Attempt] = []
        self.strangers = 0  # calls for keys that are not ours
        self.given_up: dict[int, float] = {}  # jobs that ended without success, and when the table was seen to say so
        self.greeting: str | None = None  # prefix of jobs that only show which workers are there
        self.greeted: dict[int, int] = {}  # worker to its calls for such jobs
        self.effects = np.zeros(len(dues), dtype=np.int32)
        self.state: NDArray[np.int8] = np.zeros(len(dues), dtype=np.int8)
        self._open: dict[int, list[float | int]] = {}

    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def key(self, job: int) -> str:
        """A job's key; keys sort as due times do."""
        return f"{self.prefix}{job:0{DIGITS}d}"

    def index_of(self, key: str) -> int | None:
        """The job of a key; None for a stranger's."""
        number = key.removeprefix(self.prefix)
        if number == key or not number.isdigit() or int(number) >= len(self.dues):
            return None
        return int(number)

    # -- told

    def record(self, event: AnyEvent) -> None:
        """What the sink does."""
        now = self.now()
        if isinstance(event, Called):
            job = self.index_of(event.key)
            if job is None:
                if self.greeting is not None and event.key.startswith(self.greeting):
                    self.greeted[event.worker] = self.greeted.get(event.worker, 0) + 1
                else:
                    self.strangers += 1
                return
            self._open[event.call] = [job, event.worker, now, now]
            if self.state[job] != DONE:
                self.state[job] = IN_SERVICE
        elif isinstance(event, Applied):
            job = self.index_of(event.key)
            if job is not None and event.outcome == "effect":
                self.effects[job] += 1
        elif isinstance(event, Answered):
            opened = self._open.pop(event.call, None)
            if opened is not None:
                self._close(opened, now, event.status)

    def served(self, call: int, at: float) -> None:
        """A call has passed the limiter."""
        if call in self._open:
            self._open[call][3] = at - self.began

    def give_up(self, keys: Iterable[str]) -> None:
        """Jobs that the table calls dead or set aside: whoever never reached the sink with them leaves no other trace."""
        now = self.now()
        for key in keys:
            job = self.index_of(key)
            if job is not None and self.state[job] in (WAITING, FAILED):
                self.state[job] = GIVEN_UP
                self.given_up.setdefault(job, now)

    def _close(self, opened: list[float | int], now: float, status: int | None) -> None:
        job = int(opened[0])
        self.attempts.append(Attempt(job, int(opened[1]), float(opened[2]), float(opened[3]), now, status))
        if self.state[job] == DONE:
            return
        if status is None:
            self.state[job] = WAITING
        else:
            self.state[job] = DONE if status < 400 else FAILED

    # -- asked

    def look(self, at: float | None = None) -> Look:
        """Now. Jobs that failed and wait for their next attempt are unfinished, not unstarted; those given up are neither."""
        now = self.now() if at is None else at
        due = int(np.searchsorted(self.dues, now, side="right"))
        state = self.state[:due]
        waiting = np.flatnonzero(state == WAITING)
        unfinished = np.flatnonzero(state < DONE)
        oldest = int(unfinished[0]) if len(unfinished) else None
        return Look(
            at=now,
            due=due,
            unstarted=len(waiting),
            oldest_unstarted_age=now - float(self.dues[waiting[0]]) if len(waiting) else 0.0,
            in_service=len(self._open),
            done=int(np.count_nonzero(state == DONE)),
            unfinished=len(unfinished),
            oldest_unfinished=oldest,
            oldest_unfinished_age=now - float(self.dues[oldest]) if oldest is not None else 0.0,
        )

    def first_starts(self) -> Times:
        """Per job the start of its first answered call (infinity: none yet); those still held count as started."""
        starts = np.full(len(self.dues), np.inf)
        for attempt in self.attempts:
            if attempt.answered and attempt.called < starts[attempt.job]:
                starts[attempt.job] = attempt.called
        for opened in self._open.values():
            starts[int(opened[0])] = min(starts[int(opened[0])], float(opened[2]))
        return starts
