"""Locust run by us: one process or several on this machine, headless or with its web page on the loopback interface."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from harness.contracts.problem import EnvironmentFailed
from harness.load.producer import Orders
from harness.load.producing import NOTHING, STOP_SECONDS, Produced, Report
from harness.processes.watchdog import Watchdog

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
HOST = "127.0.0.1"
GOODBYE_SECONDS = 10.0


class LocustProcess:
    """A producer like any other. ``url`` is its web page's address, when it has one."""

    lead_seconds = 8.0

    def __init__(self, *, web: bool = False, processes: int = 1) -> None:
        self.report = NOTHING
        self.url: str | None = None
        self._web, self._processes = web, processes
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._watchdog: Watchdog | None = None
        self._status = self._out = Path()
        self._said: dict[str, object] = {}
        self._saved = asyncio.Event()

    async def start(self, orders: Orders, environment: Mapping[str, str], watchdog: Watchdog, log: Path) -> None:
        """Start it with its orders beside the log. Raises EnvironmentFailed when Locust cannot enqueue for this subject."""
        if orders.enqueue_sql is None:
            raise EnvironmentFailed(
                "front: Locust enqueues by SQL, and this subject is enqueued by a command; use --front own"
            )
        folder, self._watchdog, self._out = log.parent, watchdog, Path(orders.out)
        self._status = folder / "locust-status.json"
        self.tell(phase="warm-up")
        (folder / "locust-orders.json").write_bytes(msgspec.json.encode(orders))
        command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--loglevel", "WARNING"]
        if self._web:
            port = _free_port()
            self.url = f"http://{HOST}:{port}"
            command += ["--autostart", "--web-host", HOST, "--web-port", str(port)]
        else:
            command += ["--headless", "--only-summary"]
        if self._processes > 1:
            command += ["--processes", str(self._processes), "--master-bind-host", HOST]
        told = {"QUEUEPROOF_ORDERS": str(folder / "locust-orders.json"), "QUEUEPROOF_STATUS": str(self._status)}
        whole = {**environment, **told, **watchdog.mark}
        with log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env={name: value for name, value in whole.items() if not name.startswith("LOCUST_")},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        watchdog.watch_group(self._process.pid)
        self._listener = asyncio.create_task(self._listen())

    @property
    def running(self) -> bool:
        """Whether it may still send."""
        return self._process is not None and self._process.returncode is None

    def tell(self, **words: object) -> None:
        """The phase and the oldest age, for its tables and charts; ``stop_at`` when it is to end."""
        self._said |= words
        part = self._status.with_suffix(".part")
        part.write_text(json.dumps(self._said), encoding="utf-8")
        part.replace(self._status)

    async def stop(self) -> Produced:
        """Send what is due by now, and nothing more."""
        self.tell(stop_at=self.report.at)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._saved.wait()
        except TimeoutError:
            raise EnvironmentFailed(
                f"Locust did not finish within {STOP_SECONDS:g} s of being stopped; see producer.log"
            ) from None
        finally:
            await self.kill()
        with np.load(self._out) as saved:
            return Produced(saved["job"].astype(np.int64), saved["due"], saved["sent"], saved["acknowledged"])

    async def kill(self) -> None:
        """End it, with its processes."""
        process = self._process
        if process is None:
            return
        for number, patience in ((signal.SIGTERM, GOODBYE_SECONDS), (signal.SIGKILL, GOODBYE_SECONDS)):
            if process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await process.wait()
        if self._watchdog is not None:
            self._watchdog.forget_group(process.pid)
        if self._listener is not None:
            self._listener.cancel()

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            with contextlib.suppress(msgspec.MsgspecError):
                if b'"saved"' in line:
                    self._saved.set()
                else:
                    self.report = msgspec.json.decode(line, type=Report)


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
