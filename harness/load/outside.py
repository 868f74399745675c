"""The outside as a mix of jobs: how long each call takes, which calls fail, and how many a second it lets through.

A job keeps its class (slow or not) for all its attempts; each attempt draws its own time, from the seed and the job alone.
"""

import asyncio
import time
from collections.abc import Callable

import numpy as np

from harness.capacity.draws import Service as Draws
from harness.load.plan import LoadPlan
from harness.sink.hold import HeldCall

FAILED = 503
DRAWN = 4096  # attempts drawn at a time


class Outside:
    """A sink's service for one run. ``served`` is told when a call has passed the limiter: (call number, at)."""

    def __init__(
        self, plan: LoadPlan, seed: int, index_of: Callable[[str], int | None], served: Callable[[int, float], None]
    ) -> None:
        self._scale = float(plan.time_scale)
        self._draws = Draws(float(plan.service_seconds / plan.time_scale), plan.service_shape, float(plan.service_cv2))
        self._slow = plan.slow
        self._failure_share = float(plan.failure_share)
        self._fails_for_ever = 0 if plan.stuck_head == "failing" else None
        self._rng = np.random.default_rng([seed, 1])
        self._classes = np.random.default_rng([seed, 2])
        self._unit: list[float] = []
        self._slow_jobs: list[bool] = []
        self._index_of = index_of
        self._served = served
        self._spacing = 0.0
        self._credit = 0.0
        if plan.limit_per_second is not None:
            self._spacing = 1 / float(plan.limit_per_second * plan.time_scale)
            self._credit = self._spacing * (plan.limit_burst - 1)
        self._schedule = float("-inf")

    async def serve(self, call: HeldCall) -> int | None:
        """Wait for the limiter, then hold the call for its time; 503 when this attempt is one that fails."""
        index = self._index_of(call.key)
        if index is None:  # no job of the run: it takes nothing of what the run draws and limits
            await asyncio.sleep(self._draws.mean_seconds)
            return None
        await self._pass()
        self._served(call.call, time.monotonic())
        seconds, fails = self._seconds(index), self._rng.random() < self._failure_share
        await asyncio.sleep(seconds)
        return FAILED if fails or index == self._fails_for_ever else None

    def _seconds(self, index: int) -> float:
        if not self._unit:
            self._unit = self._draws.draw(self._rng, (DRAWN, 1))[:, 0].tolist()
        seconds = self._unit.pop()
        if self._slow is None:
            return seconds
        while len(self._slow_jobs) <= index:
            more = self._classes.random(DRAWN) < float(self._slow.share)
            self._slow_jobs += more.tolist()
        if not self._slow_jobs[index]:
            return seconds
        return seconds * float(self._slow.seconds) / self._scale / self._draws.mean_seconds

    async def _pass(self) -> None:
        """The generic cell rate algorithm, as the simulation's limiter has it."""
        if not self._spacing:
            return
        now = time.monotonic()
        start = max(now, self._schedule - self._credit)
        self._schedule = max(self._schedule, start) + self._spacing
        if start > now:
            await asyncio.sleep(start - now)
