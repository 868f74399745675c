"""One worker of the subject: a whole process group, its signals, its state, its end and the output it left."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed, SubjectFailed
from harness.processes import table
from harness.processes.output import blot_out, printable_tail
from harness.processes.watchdog import Watchdog

POLL_SECONDS = 0.02
LEFTOVERS_SECONDS = 3.0
KILL_SECONDS = 5.0
TAIL_BYTES = 64 * 1024


class WorkerProcess:
    """The process group of one worker, from start to the last of its processes.

    It has ended when *nothing of it acts any more*: the leader's end gives the exit code, but a child that the leader
    left behind is given ``LEFTOVERS_SECONDS`` and then killed, as a container would. Until then the leader is not
    reaped, which keeps the group's number ours: a signal can never reach a stranger.
    """

    def __init__(self, name: str = "worker", on_exit: Callable[[int], None] | None = None) -> None:
        self.name = name
        self.on_exit = on_exit
        self._popen: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._log_before = 0  # bytes that others have written to it
        self._secret: str | None = None
        self._code: int | None = None
        self._killed = False
        self._follower: asyncio.Task[None] | None = None

    async def start(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, watchdog: Watchdog
    ) -> None:
        """Start ``command`` with exactly ``env`` (and the watchdog's mark); its output is appended to ``log``."""
        if self.running:
            raise RuntimeError(f"{self.name} is already running as process {self.pid}")
        self._log, self._code, self._killed = log, None, False
        self._secret = env.get("PGPASSWORD")
        self._popen = self._launched(list(command), cwd, {**env, **watchdog.mark}, log)
        watchdog.watch_group(self._popen.pid)
        self._follower = asyncio.create_task(self._follow(self._popen, watchdog))

    @property
    def pid(self) -> int:
        """The leader's process id, which is the group's as well."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether any process of the worker may still act."""
        return self._popen is not None and self._code is None

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; nothing happens when it is already gone."""
        if not self.running:
            return
        # PermissionError: macOS says so of a group that holds only zombies.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def wait(self, within_seconds: float) -> int | None:
        """The exit code (negative: the signal), or None when the worker is still running after ``within_seconds``."""
        if self._follower is not None:
            await asyncio.wait([self._follower], timeout=within_seconds)
        return self._code

    async def kill(self) -> int:
        """SIGKILL the group, also when it is stopped, and reap it. Returns the exit code."""
        self._killed = True
        # No SIGCONT before: it would let a paused worker act once more. SIGKILL ends a stopped process by itself.
        self.signal(signal.SIGKILL)
        self.signal(signal.SIGCONT)
        code = await self.wait(KILL_SECONDS)
        if code is None:
            raise EnvironmentFailed(
                f"{self.name} (process group {self.pid}) is still there {KILL_SECONDS:g} s after SIGKILL"
            )
        return code

    def state(self) -> str:
        """One of "running", "stopped" (every living process of the group is), "zombie" (all are dead) and "gone"."""
        if self._popen is None or self._code is not None:
            return table.GONE
        states = set(table.group(self.pid).values())
        for state in ("running", "stopped", "zombie"):
            if state in states:
                return state
        return table.GONE

    def tail(self, lines: int = 15) -> str:
        """The last lines of its output, fit to print: bytes that are no text replaced, control characters escaped.

        What those before it have written to the same file is shown only when it has written nothing itself.
        """
        if self._log is None:
            return ""
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                mine = self._log_before if size > self._log_before else 0
                file.seek(max(mine, size - TAIL_BYTES))
                return printable_tail(file.read(TAIL_BYTES), lines, self._secret)
        except OSError as error:
            return f"(its output {self._log} cannot be read: {error.strerror})"

    def _launched(self, command: list[str], cwd: Path, env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
        """Blocks for the millisecond that fork and exec take."""
        if not cwd.is_dir():
            raise SubjectFailed(f"{self.name} cannot start: its folder {cwd} does not exist")
        try:
            output = log.open("ab")
        except OSError as error:
            raise EnvironmentFailed(f"cannot write the output of {self.name} to {log}: {error.strerror}") from error
        with output:
            self._log_before = output.tell()
            try:
                return subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                raise SubjectFailed(
                    f"{self.name} cannot start: {command[0]!r}: {reason}; see [subject.worker] command"
                ) from error

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        if self._popen is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._popen

    async def _follow(self, process: subprocess.Popen[bytes], watchdog: Watchdog) -> None:
        await _leader_ended(process.pid)
        await self._leftovers_ended(process.pid)
        watchdog.forget_group(process.pid)
        if self._log is not None:
            with contextlib.suppress(OSError):  # a disk that is full has no say in how a worker ended
                blot_out(self._log, self._secret)
        self._code = process.wait()
        if self.on_exit is not None:
            self.on_exit(self._code)

    async def _leftovers_ended(self, pgid: int) -> None:
        deadline = time.monotonic() + LEFTOVERS_SECONDS
        while set(table.group(pgid).values()) - {"zombie"}:
            if self._killed or time.monotonic() > deadline:
                os.killpg(pgid, signal.SIGKILL)
            await asyncio.sleep(POLL_SECONDS)


async def _leader_ended(pid: int) -> None:
    """Return when the process has ended, without reaping it. No deadline: a worker may live as long as the run."""
    if hasattr(os, "pidfd_open"):
        descriptor = os.pidfd_open(pid)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return
    while table.group(pid).get(pid, "zombie") != "zombie":
        await asyncio.sleep(POLL_SECONDS)
