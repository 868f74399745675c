"""What is observed all through a play: truth as it appears, open transactions while a call is at the sink, machine stalls."""

import asyncio
import time
from typing import TYPE_CHECKING

import psycopg

from harness.history.events import Stalled
from harness.postgres.truth import TruthReader

if TYPE_CHECKING:
    from harness.lab.lab import Lab

TRUTH_EVERY_SECONDS = 0.015
PULSE_SECONDS = 0.05
STALL_MS = 250.0


class Watch:
    """The background tasks of one play. A task that dies stops the play: ``trouble`` carries its exception."""

    def __init__(self, lab: "Lab", truth: TruthReader) -> None:
        self._lab = lab
        self.truth = truth
        self.trouble: BaseException | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._reading = asyncio.Lock()

    def start(self) -> None:
        """Begin to watch."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._follow_truth()), loop.create_task(self._feel_pulse())]

    async def stop(self) -> None:
        """End every task, and wait for it: a connection must not be closed while its socket is still being watched."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def read_truth(self) -> None:
        """Record what has become visible."""
        async with self._reading:
            before = time.monotonic()
            unseen = await self.truth.unseen()
            # A query that nobody can block: when it takes long, the machine is slow, or the server is.
            took_ms = (time.monotonic() - before) * 1000
            if took_ms > STALL_MS:
                self._lab.recorder.record(Stalled(select_one_ms=round(took_ms, 1)))
            for moved in unseen:
                if moved.ours and moved.key is not None:
                    self._lab.known.add(moved.key, moved.job)
                self._lab.recorder.record(moved)

    async def _follow_truth(self) -> None:
        try:
            while True:
                try:
                    await self.read_truth()
                except psycopg.OperationalError:
                    if self._lab.ground.own_cluster is None:
                        raise
                    await self._lab.reconnect()  # a fault took the server away; what it committed is still to be read
                await asyncio.sleep(TRUTH_EVERY_SECONDS)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.trouble = error
            raise

    async def _feel_pulse(self) -> None:
        """How late our own loop wakes: a stalled machine makes time bounds inconclusive, not the subject wrong."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(PULSE_SECONDS)
            lag_ms = (time.monotonic() - before - PULSE_SECONDS) * 1000
            if lag_ms > STALL_MS:
                self._lab.recorder.record(Stalled(loop_lag_ms=round(lag_ms, 1)))
