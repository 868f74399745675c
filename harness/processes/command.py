"""A command of the subject that runs to its end, such as its install: bounded in time, and none of it outlives its call."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.problem import SubjectFailed
from harness.processes.output import printable_tail
from harness.processes.watchdog import Watchdog

TAIL_LINES = 15


@dataclass(frozen=True)
class Finished:
    """A command that has ended by itself."""

    code: int
    out: bytes
    errors: str  # the end of its error output, fit to print


async def run_command(
    what: str,
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    watchdog: Watchdog,
    within_seconds: float,
    said: bytes = b"",
) -> Finished:
    """Run it with ``said`` on its standard input. SubjectFailed names ``what`` when it cannot start or does not end."""
    try:
        # A file and no pipe: a command that does not read to the end is no error of ours, whatever event loop we run on.
        with tempfile.TemporaryFile() as heard:
            heard.write(said)
            heard.seek(0)
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**env, **watchdog.mark},
                stdin=heard,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SubjectFailed(f"{what} cannot start: {command[0]!r}: {reason}") from error
    watchdog.watch_group(process.pid)
    talk = asyncio.ensure_future(process.communicate())
    try:
        await asyncio.wait([talk], timeout=within_seconds)
        if not talk.done():
            raise SubjectFailed(f"{what} did not end within {within_seconds:g} s, and was ended")
    finally:
        # What it left in the background goes too; and our end of its pipes closes while the event loop still runs.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        out, errors = await talk
        watchdog.forget_group(process.pid)
    return Finished(process.returncode or 0, out, printable_tail(errors, TAIL_LINES, env.get("PGPASSWORD")))
