"""A worker's main thread hangs while its other threads go on: what a blocked event loop looks like from outside."""

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.target import Target, comes_true, has_victim

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000


def traces(_: Target) -> str | None:
    """Needs Linux, where one thread of a process can be stopped."""
    return None if sys.platform.startswith("linux") else "one thread of a process can be stopped on Linux only"


@fault("main thread blocked", strikes="worker", needs=[has_victim, traces], holds_leases=1.5)
async def worker_loop_blocked(target: Target) -> AsyncIterator[Landed]:
    """The main thread of a worker is stopped, its other threads run on: a handler that blocks the event loop.

    A heartbeat that lives on the loop stops with it; one with a thread of its own goes on, and keeps the lease.
    """
    victim = target.victim
    held = _HeldThread(victim.pid)
    held.start()
    try:
        await comes_true(lambda: held.told is not None, within_seconds=5, reason="the main thread to be stopped")
        if held.told:
            raise Inapplicable(held.told)
        threads = len(os.listdir(f"/proc/{victim.pid}/task"))  # noqa: PTH208
        yield Landed(
            f"thread {victim.pid} of process {victim.pid} is {_state(victim.pid)}, one of {threads}", victim.number
        )
    finally:
        held.enough.set()
        await asyncio.to_thread(held.join, 5)


class _HeldThread(threading.Thread):
    """Traces a thread. The system undoes it when this thread, or the whole harness, ends."""

    def __init__(self, thread_id: int) -> None:
        super().__init__(daemon=True, name=f"holds {thread_id}")
        self.told: str | None = None  # "" once it is held, else why it is not
        self.enough = threading.Event()
        self._thread_id = thread_id

    def run(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        libc.ptrace.restype = ctypes.c_long
        if libc.ptrace(_SEIZE, self._thread_id, None, None) != 0:
            self.told = f"a thread of ours cannot be stopped here: {os.strerror(ctypes.get_errno())}"
            return
        if libc.ptrace(_INTERRUPT, self._thread_id, None, None) == 0:
            os.waitpid(self._thread_id, _WALL)
        self.told = ""
        self.enough.wait()
        libc.ptrace(_DETACH, self._thread_id, None, None)


def _state(pid: int) -> str:
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text(encoding="utf-8")
    return next(line.split(":")[1].strip() for line in status.splitlines() if line.startswith("State"))
