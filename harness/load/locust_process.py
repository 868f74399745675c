"""Locust run by us: one process or several on this machine, headless or with its web page on the loopback interface; or a
master of ours for workers that are started on other machines, when producers outgrow one.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from harness.contracts.problem import EnvironmentFailed
from harness.load.producer import Orders
from harness.load.producing import NOTHING, STOP_SECONDS, Produced, Report
from harness.load.workers import JOIN_SECONDS
from harness.processes.watchdog import Watchdog

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
HOST = "127.0.0.1"
ORDERS_FILE = "locust-orders.json"
WORKER = "python3 -m locust -f \"$(python3 -c 'import harness.load as l; print(l.__path__[0])')/locustfile.py\""
GOODBYE_SECONDS = 10.0
STOP_AHEAD_SECONDS = 1.0


class LocustProcess:
    """A producer like any other. ``url`` is its web page's address, when it has one."""

    lead_seconds = 8.0

    def __init__(self, *, web: bool = False, processes: int = 1, elsewhere: int = 0, host: str = HOST) -> None:
        self.report = NOTHING
        self._elsewhere, self._host = elsewhere, host
        self._joined = asyncio.Event()
        self._began = 0.0
        self.url: str | None = None
        self._web, self._processes = web, processes
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._watchdog: Watchdog | None = None
        self._status = self._out = Path()
        self._said: dict[str, object] = {}
        self._saved = asyncio.Event()

    async def prepare(
        self, environment: Mapping[str, str], watchdog: Watchdog, log: Path, tell: Callable[[str], None]
    ) -> None:
        """With workers elsewhere: a master that waits until all have joined. Raises EnvironmentFailed."""
        if not self._elsewhere:
            return
        port = _free_port(self._host)
        options = f"--headless --only-summary --master --master-bind-host {self._host} --master-bind-port {port}"
        await self._launch([*options.split(), "--expect-workers", str(self._elsewhere)], environment, watchdog, log)
        tell(
            f"waiting for {self._elsewhere} Locust workers; start each on its machine, where queueproof is installed, with"
        )
        # The password of whoever enqueues is the user's own: libpq takes it from PGPASSWORD or a password file.
        url = _without_password(environment["DATABASE_URL"])
        tell(f"  DATABASE_URL={shlex.quote(url)} {WORKER} --worker --master-host {self._host} --master-port {port}")
        await self._all_joined()
        tell("all Locust workers have joined")

    async def _all_joined(self) -> None:
        assert self._process is not None
        ended = asyncio.create_task(self._process.wait())
        joined = asyncio.create_task(self._joined.wait())
        done, left = await asyncio.wait([ended, joined], timeout=JOIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        if joined not in done:
            why = "Locust's master ended" if ended in done else f"they did not within {JOIN_SECONDS:g} s"
            raise EnvironmentFailed(
                f"front: waited for {self._elsewhere} Locust workers to join, and {why}; see producer.log"
            )

    async def start(self, orders: Orders, environment: Mapping[str, str], watchdog: Watchdog, log: Path) -> None:
        """Start it with its orders beside the log. Raises EnvironmentFailed when Locust cannot enqueue for this subject."""
        if orders.enqueue_sql is None:
            raise EnvironmentFailed(
                "front: Locust enqueues by SQL, and this subject is enqueued by a command; use --front own"
            )
        folder, self._out, self._began = log.parent, Path(orders.out), orders.began
        part = folder / "locust-orders.part"
        part.write_bytes(msgspec.json.encode(orders))
        part.replace(folder / ORDERS_FILE)
        if self._elsewhere:
            return  # its master waits for this file
        command = ["--headless", "--only-summary"]
        if self._web:
            port = _free_port(HOST)
            self.url = f"http://{HOST}:{port}"
            command = ["--autostart", "--web-host", HOST, "--web-port", str(port)]
        if self._processes > 1:
            command += ["--processes", str(self._processes), "--master-bind-host", HOST]
        await self._launch(command, environment, watchdog, log)

    async def _launch(self, options: list[str], environment: Mapping[str, str], watchdog: Watchdog, log: Path) -> None:
        folder, self._watchdog = log.parent, watchdog
        self._status = folder / "locust-status.json"
        self.tell(phase="warm-up")
        told = {"QUEUEPROOF_ORDERS": str(folder / ORDERS_FILE), "QUEUEPROOF_STATUS": str(self._status)}
        whole = {**environment, **told, **watchdog.mark}
        with log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--loglevel", "WARNING", *options),
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
        # A moment ahead, so that every process hears of it before, and all stop at the same job.
        self.tell(stop_at=time.monotonic() - self._began + STOP_AHEAD_SECONDS)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._saved.wait()
        except TimeoutError:
            raise EnvironmentFailed(
                f"Locust did not finish within {STOP_SECONDS:g} s of being stopped; see producer.log"
            ) from None
        finally:
            await self._leave()
            await self.kill()
        with np.load(self._out) as saved:
            return Produced(saved["job"].astype(np.int64), saved["due"], saved["sent"], saved["acknowledged"])

    async def _leave(self) -> None:
        """A master whose work is done takes leave of its workers, if it is let."""
        if self._elsewhere and self._saved.is_set() and self._process is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._process.wait()

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
                elif b'"joined"' in line:
                    self._joined.set()
                else:
                    self.report = msgspec.json.decode(line, type=Report)


def _free_port(host: str) -> int:
    with contextlib.closing(socket.socket()) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise EnvironmentFailed(f"sink-host: {host} is no address of this machine: {error.strerror}") from error
        return int(probe.getsockname()[1])


def _without_password(url: str) -> str:
    return re.sub(r"^(\w+://[^:/@]*):[^/]*@", r"\1@", url)
