"""Where things that are slow to make are kept between runs; each appears whole, by a rename, or not at all."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.account import Account


def cache_folder() -> Path:
    """QUEUEPROOF_CACHE, else the system's cache when root (another user must enter it), else the user's own."""
    named = os.environ.get("QUEUEPROOF_CACHE")
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/queueproof")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "queueproof"


def kept(name: str, account: Account, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of the cache; when absent, ``make`` fills a new folder that becomes it.

    Two processes at once: one waits for the other. A process killed on the way leaves a folder that the next one
    removes, since nobody but the holder of the lock makes any.
    """
    cache = cache_folder()
    target = cache / name
    if target.is_dir():
        return target
    try:
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _only_one(cache / f"{name}.lock"):
            if target.is_dir():
                return target
            for leftover in cache.glob(f"{name}.making-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.making-", dir=cache))
            try:
                if account.uid is not None and account.gid is not None:
                    os.chown(unfinished, account.uid, account.gid)
                make(unfinished)
                unfinished.rename(target)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
    except OSError as error:
        raise EnvironmentFailed(
            f"cannot keep a server's files in {cache}: {error.strerror}; name another folder with QUEUEPROOF_CACHE"
        ) from error
    return target


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go by the system when we die
        yield
