"""A worker process whose own clock is off, by a preloaded libfaketime; the monotonic clock stays true."""

import sys
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed

LIBRARY = "libfaketime.so.1"


def library() -> Path | None:
    """The shared library that the wheel carries, or None on a system that has none."""
    if not sys.platform.startswith("linux"):
        return None
    import libfaketime

    folder = Path(libfaketime.__file__).parent
    return next(iter(sorted(folder.rglob(LIBRARY))), None)


def environment(offset_seconds: int) -> dict[str, str]:
    """What a worker's environment needs for its clock to be off by that much. Raises EnvironmentFailed without the library."""
    found = library()
    if found is None:
        raise EnvironmentFailed("a worker's clock cannot be skewed here: libfaketime needs Linux")
    return {"LD_PRELOAD": str(found), "FAKETIME": f"{offset_seconds:+d}s", "DONT_FAKE_MONOTONIC": "1"}


def landed(pid: int) -> str | None:
    """The proof, from the process table: the library is mapped into the process. None when it is not."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return f"{LIBRARY} is mapped into process {pid}" if LIBRARY in maps else None
