"""The producer as its parent sees it: started with its orders, listened to, stopped, and read."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from harness.contracts.problem import EnvironmentFailed
from harness.load.producer import Orders
from harness.load.schedule import Times
from harness.processes.watchdog import Watchdog

STOP_SECONDS = 60.0


class Report(msgspec.Struct, frozen=True):
    """What a producer says several times a second."""

    at: float
    sent: int
    acknowledged: int
    lag_ms: float
    trouble: int
    last_trouble: str


NOTHING = Report(0.0, 0, 0, 0.0, 0, "")


@dataclass(frozen=True)
class Produced:
    """Which jobs were due, sent and acknowledged, and when; seconds from the run's beginning."""

    job: np.ndarray
    due: Times
    sent: Times
    acknowledged: Times

    @property
    def count(self) -> int:
        return len(self.job)

    def lag_seconds(self, share: float, *, outside: tuple[float, float] | None = None) -> float:
        """A quantile of how late jobs were sent; those due in the window ``outside`` are left out."""
        lag = self.sent - self.due
        if outside is not None:
            lag = lag[(self.due < outside[0]) | (self.due > outside[1])]
        return float(np.quantile(lag, share)) if len(lag) else 0.0


class Production(Protocol):
    """Whatever produces: our own process, or Locust's."""

    report: Report
    lead_seconds: float  # from its start until it can be on time

    @property
    def running(self) -> bool:
        """Whether it may still send."""

    def tell(self, **words: object) -> None:
        """How the run goes, for those who show it: phase, age_ms."""

    async def prepare(
        self, environment: Mapping[str, str], watchdog: Watchdog, log: Path, tell: Callable[[str], None]
    ) -> None:
        """Whatever takes an unknown time, before the schedule is fixed. Raises EnvironmentFailed."""

    async def start(self, orders: Orders, environment: Mapping[str, str], watchdog: Watchdog, log: Path) -> None:
        """Begin on schedule."""

    async def stop(self) -> Produced:
        """Send what is due by now, and nothing more."""

    async def kill(self) -> None:
        """End it, whatever it does."""


class ProducerProcess:
    """One producer. ``report`` is its latest word."""

    lead_seconds = 2.5

    def __init__(self) -> None:
        self.report = NOTHING
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._watchdog: Watchdog | None = None
        self._out = Path()

    async def prepare(
        self, environment: Mapping[str, str], watchdog: Watchdog, log: Path, tell: Callable[[str], None]
    ) -> None:
        """It needs nobody else."""

    async def start(self, orders: Orders, environment: Mapping[str, str], watchdog: Watchdog, log: Path) -> None:
        """Start it; the first job is sent when it is due."""
        self._out, self._watchdog = Path(orders.out), watchdog
        with log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "harness.load.producer"),
                env={**environment, **watchdog.mark},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        watchdog.watch_group(self._process.pid)
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(orders) + b"\n")
        await self._process.stdin.drain()
        self._listener = asyncio.create_task(self._listen())

    def tell(self, **words: object) -> None:
        """It shows nothing to anybody."""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> Produced:
        """No more jobs from now on. Returns when those due by now are acknowledged. Raises EnvironmentFailed."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(b"stop\n")
            await self._process.stdin.drain()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                code = await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise EnvironmentFailed(f"the producer did not finish within {STOP_SECONDS:g} s of being stopped") from None
        await self._finish()
        if code != 0:
            raise EnvironmentFailed(f"the producer ended with exit code {code}; see producer.log in the run's folder")
        with np.load(self._out) as saved:
            return Produced(saved["job"], saved["due"], saved["sent"], saved["acknowledged"])

    async def kill(self) -> None:
        """End it, whatever it does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._finish()

    async def _finish(self) -> None:
        if self._watchdog is not None and self._process is not None:
            self._watchdog.forget_group(self._process.pid)
        if self._listener is not None:
            await asyncio.wait([self._listener], timeout=1.0)
            self._listener.cancel()

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            with contextlib.suppress(msgspec.MsgspecError):
                self.report = msgspec.json.decode(line, type=Report)
