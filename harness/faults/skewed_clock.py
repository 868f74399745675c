"""A worker process whose own clock is off, by a preloaded libfaketime; the monotonic clock stays true."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from harness.contracts.fault import Landed, fault
from harness.contracts.problem import EnvironmentFailed
from harness.faults.target import Target, comes_true, has_victim, shown
from harness.history.recorder import DeadlinePassed
from harness.postgres.clock import LIBRARY, ServerClock, library

HOUR_SECONDS = 3600
BEHIND_SECONDS = 0.5
READING_SECONDS = 5.0
TOLERATED_SECONDS = 60.0
TITLE = "clock skewed"


def environment(offset_seconds: int) -> dict[str, str]:
    """What a worker's environment needs for its clock to be off by that much. Raises EnvironmentFailed without the library."""
    return {"LD_PRELOAD": str(_library()), "FAKETIME": f"{offset_seconds:+d}s", "DONT_FAKE_MONOTONIC": "1"}


def _library() -> Path:
    found = library()
    if found is None:
        raise EnvironmentFailed("a worker's clock cannot be skewed here: libfaketime needs Linux")
    return found


def landed(pid: int) -> str | None:
    """The proof, from the process table: the library is mapped into the process. None when it is not."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return f"{LIBRARY} is mapped into process {pid}" if LIBRARY in maps else None


async def _proof(pid: int, offset_seconds: int) -> str:
    """That a process which is started in this one's place, with its environment, reads a time that is off by so much.

    The process itself cannot be asked, and a library that does not find its file of the time is mapped all the same.
    """
    place = Path(f"/proc/{pid}")
    told = dict(
        pair.split("=", 1) for pair in (place / "environ").read_text("utf-8", "replace").split("\0") if "=" in pair
    )
    env = {name: value for name, value in told.items() if name == "LD_PRELOAD" or "FAKE" in name}
    reading = await asyncio.create_subprocess_exec(
        sys.executable,
        "-ISc",
        "import time; print(time.time())",
        cwd=place / "cwd",
        env=env,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(READING_SECONDS):
            said, _ = await reading.communicate()
    finally:
        if reading.returncode is None:
            reading.kill()
    ahead = float(said) - time.time()
    if abs(ahead - offset_seconds) > TOLERATED_SECONDS:
        raise DeadlinePassed(
            f"the clock of process {pid} should be off by {offset_seconds:+d} s and is by {ahead:+.0f} s"
        )
    return f"a process in its place reads a time that is off by {ahead:+.0f} s"


def on_linux(_: Target) -> str | None:
    """Needs Linux, and libfaketime for the worker's own clock."""
    return None if library() is not None else "a process's clock can be moved on Linux only"


def has_folder(target: Target) -> str | None:
    """Needs a folder for the file that tells the time."""
    return None if target.folder is not None else "there is no folder to tell the time in"


@fault(TITLE, strikes="clock", needs=[has_victim, on_linux], holds_seconds=3.0)
async def skewed_clock_behind(target: Target) -> AsyncIterator[Landed]:
    """A worker is restarted on a machine whose clock is an hour behind; healed by another restart."""
    async for proof in _skewed(target, -HOUR_SECONDS):
        yield proof


@fault(TITLE, strikes="clock", needs=[has_victim, on_linux], holds_seconds=3.0)
async def skewed_clock_ahead(target: Target) -> AsyncIterator[Landed]:
    """A worker is restarted on a machine whose clock is an hour ahead; healed by another restart."""
    async for proof in _skewed(target, HOUR_SECONDS):
        yield proof


@fault("clock stepped", strikes="clock", needs=[has_victim, on_linux, has_folder], holds_seconds=2.0)
async def skewed_clock_stepped(target: Target) -> AsyncIterator[Landed]:
    """A worker's clock jumps an hour ahead while it runs, and two hours back; healed by a restart with the true time."""
    victim = target.victim
    assert target.folder is not None, "asked before"
    clock = ServerClock(target.folder / f"clock-of-worker-{victim.number}", _library())
    await victim.kill()
    try:
        await victim.start_with(clock.environment())

        async def mapped() -> str | None:
            return landed(victim.pid)

        proof = await shown(mapped, within_seconds=5, reason=f"libfaketime in the process of worker {victim.number}")
        await comes_true(lambda: victim.sessions, within_seconds=10, reason=f"worker {victim.number} to connect")
        clock.advance(HOUR_SECONDS)
        seen = await _proof(victim.pid, HOUR_SECONDS)
        yield Landed(f"{proof}, whose clock jumped while it ran: {seen}", victim.number)
        clock.advance(-2 * HOUR_SECONDS)
        await asyncio.sleep(BEHIND_SECONDS)
    finally:
        if victim.running:
            await victim.kill()
        await victim.start()


async def _skewed(target: Target, offset_seconds: int) -> AsyncIterator[Landed]:
    victim = target.victim
    await victim.kill()
    try:
        await victim.start_with(environment(offset_seconds))

        async def mapped() -> str | None:
            return landed(victim.pid)

        proof = await shown(mapped, within_seconds=5, reason=f"libfaketime in the process of worker {victim.number}")
        seen = await _proof(victim.pid, offset_seconds)
        yield Landed(f"{proof}, {offset_seconds:+d} s: {seen}", victim.number)
    finally:
        if victim.running:
            await victim.kill()
        await victim.start()
