"""The clock of a server of ours: libfaketime in the postmaster, told by a file how far ahead the time of day is.

``now()`` and ``clock_timestamp()`` follow at once, in open connections too; waits and timeouts, which run on the monotonic
clock, do not. Moving it ends *every* lease: the lab does so only when each live holder is held or stopped.
"""

import contextlib
import sys
from functools import cache
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed

LIBRARY = "libfaketime.so.1"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the system's, where it has one


@cache
def library() -> Path | None:
    """The shared library that the wheel carries, or None on a system that has none."""
    if not sys.platform.startswith("linux"):
        return None
    import libfaketime

    folder = Path(libfaketime.__file__).parent
    return next(iter(sorted(folder.rglob(LIBRARY))), None)


def forget(pid: int) -> None:
    """Remove what the library shares among a process and its children, when that process was ended before it could."""
    for name in (f"sem.faketime_sem_{pid}", f"faketime_shm_{pid}"):
        SHARED_MEMORY.joinpath(name).unlink(missing_ok=True)


def forget_dead_since(began: float) -> None:
    """The same for short-lived children that a server has made since then (time of day), whose numbers nobody knows."""
    for file in SHARED_MEMORY.glob("faketime_shm_*"):
        pid = int(file.name.rpartition("_")[2])
        with contextlib.suppress(OSError):
            if file.stat().st_mtime >= began and not Path(f"/proc/{pid}").exists():
                forget(pid)


class ServerClock:
    """One server's clock. The file outlives restarts, and so does the offset."""

    def __init__(self, file: Path, preloaded: Path) -> None:
        self.offset_seconds = 0.0
        self._file = file
        self._preloaded = preloaded
        self._write()

    def environment(self, file: Path | None = None, preloaded: Path | None = None) -> dict[str, str]:
        """What the postmaster is started with; a container sees the two files elsewhere."""
        return {
            "LD_PRELOAD": str(preloaded or self._preloaded),
            "FAKETIME_TIMESTAMP_FILE": str(file or self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def advance(self, seconds: float) -> None:
        """Move it, forward or (negative) back."""
        self.offset_seconds += seconds
        self._write()

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        try:
            fresh.write_text(f"{self.offset_seconds:+f}\n", encoding="ascii")
            fresh.chmod(0o644)
            fresh.replace(self._file)  # a backend never reads half a line
        except OSError as error:
            raise EnvironmentFailed(f"the server's clock cannot be moved: {error}") from error
