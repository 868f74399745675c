"""Samplers beside a load run, once a second or oftener: the table's counts, the server's own view, the machine, two latencies.

They are looked at, never waited for: a sample that cannot be taken (the database is down on purpose) is a row that says so.
"""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import aiohttp
import pandas as pd  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]
import psycopg

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.load.table import Counts, LoadTable, statement
from harness.load.trace import Look, Trace
from harness.postgres.address import Address

LONGEST_PERIOD_SECONDS = 1.0
SHORTEST_PERIOD_SECONDS = 0.25
ANSWER_SECONDS = 5.0
LOOP_TICK_SECONDS = 0.05
_CPU = re.compile(r'node_cpu_seconds_total\{[^}]*mode="(\w+)"[^}]*\}\s+([0-9.e+]+)')
_RATES = ("commits", "rollbacks", "wal_bytes", "wal_records", "blocks_read")


class Samplers:
    """Take a row each period until stopped. ``rows`` and ``looks`` are there to be read meanwhile."""

    def __init__(
        self,
        owner: Address,
        worker_role: str,
        table: LoadTable,
        trace: Trace,
        *,
        server_pid: Callable[[], int | None],
        worker_pids: Callable[[], Sequence[int]],
        alive: Callable[[], Sequence[str]],
        acknowledged: Callable[[], tuple[int, int]],
        host_metrics: str | None = None,
        time_scale: float = 1.0,
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.latest: Counts | None = None
        self.period = min(LONGEST_PERIOD_SECONDS, max(SHORTEST_PERIOD_SECONDS, LONGEST_PERIOD_SECONDS / time_scale))
        self.last_look: Look | None = None
        self.worst_loop_lag = 0.0
        self._owner, self._worker_role, self._table, self._trace = owner, worker_role, table, trace
        self._alive, self._acknowledged = alive, acknowledged
        self._machine = Machine(server_pid, worker_pids)
        self._host = HostMetrics(host_metrics) if host_metrics else None
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._phase = "warm-up"
        self._can_flush = True
        self._given_up = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._lag = 0.0

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._watch_loop())]

    def phase(self, name: str) -> None:
        """What the coming rows belong to."""
        self._phase = name

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()
        if self._host is not None:
            await self._host.aclose()

    def frame(self) -> pd.DataFrame:
        """All samples as a table; counters of the server become rates per second beside them."""
        frame = pd.DataFrame(self.rows)
        if frame.empty:
            return frame
        # The server publishes its counters about once a second, so a rate is taken over that much.
        apart = max(1, round(LONGEST_PERIOD_SECONDS / self.period))
        for name in _RATES:
            if name in frame:
                rate = frame[name].astype(float).diff(apart) / frame["at"].diff(apart)
                frame[f"{name}_per_second"] = rate.where(rate >= 0)
        return frame

    def save(self, folder: Path) -> None:
        """``samples.csv`` in the run's folder."""
        self.frame().to_csv(folder / "samples.csv", index=False)

    async def _run(self) -> None:
        following = time.monotonic()
        while True:
            row = await self._sample()
            self.rows.append(row)
            following = max(following + self.period, time.monotonic())
            await asyncio.sleep(following - time.monotonic())

    async def _sample(self) -> dict[str, Any]:
        look = self.last_look = self._trace.look()
        row: dict[str, Any] = {"at": round(look.at, 4), "phase": self._phase}
        row |= {f"trace_{name}": value for name, value in vars(look).items() if name != "at"}
        row |= {"completions": look.done, "loop_lag_ms": round(self._lag * 1000, 2)}
        self._lag = 0.0
        row |= self._machine.sample()
        if self._host is not None:
            row |= await self._host.sample()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                row |= await self._database()
        except (psycopg.Error, OSError, TimeoutError):
            row["database_answers"] = False
            await self._drop()
        return row

    async def _database(self) -> dict[str, Any]:
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(
                self._owner.dsn(), autocommit=True, application_name="queueproof sampler", connect_timeout=3
            )
        connection = self._connection
        row: dict[str, Any] = {"database_answers": True}
        began = time.perf_counter()
        await connection.execute("select 1")
        row["select_1_ms"] = round((time.perf_counter() - began) * 1000, 3)
        if self._can_flush:
            began = time.perf_counter()
            try:
                await connection.execute(statement("flush"))
                row["flush_ms"] = round((time.perf_counter() - began) * 1000, 3)
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
                self._can_flush = False
        least, _ = self._acknowledged()
        counts = self.latest = await self._table.counts(connection, self._alive())
        if counts.dead + counts.set_aside != self._given_up:
            self._trace.give_up(await self._table.given_up(connection))
            self._given_up = counts.dead + counts.set_aside
        row["at_table"] = round(self._trace.now(), 4)
        _, most = self._acknowledged()
        row |= {f"table_{name}": value for name, value in vars(counts).items()}
        row |= {"acknowledged_before": least, "acknowledged_after": most, "accounted": counts.accounted}
        return row | await self._table.server(connection, self._worker_role)

    async def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                await self._connection.close()
            self._connection = None

    async def _watch_loop(self) -> None:
        """How late our own event loop is: a late loop holds calls too long, and a run on such a machine is worth less."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(LOOP_TICK_SECONDS)
            late = time.monotonic() - began - LOOP_TICK_SECONDS
            self._lag = max(self._lag, late)
            self.worst_loop_lag = max(self.worst_loop_lag, late)


class Machine:
    """CPU and disk wait of this machine, in cores used since the last sample, for the server and the workers apart."""

    def __init__(self, server_pid: Callable[[], int | None], worker_pids: Callable[[], Sequence[int]]) -> None:
        self._server_pid, self._worker_pids = server_pid, worker_pids
        self._used: dict[int, float] = {}
        self._at = time.monotonic()
        self.cores = psutil.cpu_count() or 1
        psutil.cpu_times_percent(None)

    def sample(self) -> dict[str, float]:
        """Since the last one."""
        now = time.monotonic()
        span, self._at = max(now - self._at, 1e-6), now
        times = psutil.cpu_times_percent(None)
        server = self._server_pid()
        seen: dict[int, float] = {}
        row = {
            "cpu_percent": round(100.0 - times.idle - getattr(times, "iowait", 0.0), 1),
            "disk_wait_percent": round(getattr(times, "iowait", 0.0), 1),
            "workers_cores": self._cores(self._worker_pids(), seen, span),
        }
        if server is not None:
            row["server_cores"] = self._cores([server], seen, span)
            # Server, workers and producer are our children: what else is used is used by strangers.
            ours = self._cores([os.getpid()], seen, span)
            row["foreign_cores"] = round(max(row["cpu_percent"] / 100 * self.cores - ours, 0.0), 3)
        self._used = seen
        return row

    def _cores(self, leaders: Sequence[int], seen: dict[int, float], span: float) -> float:
        used = 0.0
        for leader in leaders:
            for pid in family(leader):
                with contextlib.suppress(psutil.Error):
                    times = psutil.Process(pid).cpu_times()
                    total = times.user + times.system
                    seen[pid] = total
                    used += max(total - self._used.get(pid, total), 0.0)
        return round(used / span, 3)


def family(leader: int) -> list[int]:
    """A process and its descendants. Linux lists children by itself; asking psutil reads every process of the machine, which
    held up our event loop, and with it the calls that it serves, for a tenth of the time.
    """
    if not Path(f"/proc/{leader}/task/{leader}/children").exists():
        try:
            return [leader, *(child.pid for child in psutil.Process(leader).children(recursive=True))]
        except psutil.Error:
            return []
    found = [leader]
    for pid in found:  # grows as it is walked
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  four times as quick as pathlib, every second
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


class HostMetrics:
    """Another machine's CPU and disk wait, from its node exporter."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadInput(f'host-metrics: "{url}" is not a URL such as http://db-host:9100/metrics')
        self._url = url
        self._session: aiohttp.ClientSession | None = None
        self._before: dict[str, float] = {}

    async def check(self) -> None:
        """Raises EnvironmentFailed unless a node exporter answers: a run without its figures would be run in vain."""
        await self.sample()
        if not self._before:
            raise EnvironmentFailed(f"host-metrics: no node exporter answers at {self._url}")

    async def sample(self) -> dict[str, float]:
        """Percent of all its cores since the last sample; nothing when it does not answer."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2))
        try:
            async with self._session.get(self._url) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return {}
        return self._read(text)

    def _read(self, text: str) -> dict[str, float]:
        now: dict[str, float] = {}
        cores = 0
        for mode, value in _CPU.findall(text):
            now[mode] = now.get(mode, 0.0) + float(value)
            cores += mode == "idle"  # a line for each
        before, self._before = self._before, now
        spent = sum(now.values()) - sum(before.values())
        if not before or spent <= 0:
            return {}

        def share(*modes: str) -> float:
            return round(100 * sum(now.get(mode, 0.0) - before.get(mode, 0.0) for mode in modes) / spent, 1)

        return {
            "host_cores": cores,
            "host_cpu_percent": round(100 - share("idle", "iowait"), 1),
            "host_disk_wait_percent": share("iowait"),
        }

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()


def number(frame: pd.DataFrame, column: str, quantile: float, phase: str | None = None) -> float | None:
    """A quantile of a column within a phase; None when nothing was measured."""
    if column not in frame:
        return None
    chosen = frame[column] if phase is None else frame.loc[frame["phase"] == phase, column]
    chosen = chosen.dropna()
    return None if chosen.empty else float(cast("float", chosen.astype(float).quantile(quantile)))
