"""Who waits behind a lock of ours: seen on the server, each backend and statement once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import psycopg

from harness.faults.target import Target
from harness.history.events import Blocked
from harness.postgres.view import ServerView

_LOOK_SECONDS = 0.02


@contextlib.asynccontextmanager
async def watched(target: Target, holder: int) -> AsyncIterator[None]:
    """Record, for the time of a block, which workers are seen waiting behind backend ``holder``."""
    async with target.connected("bystanders") as connection:
        view = ServerView(connection, target.mapping, target.table)
        watcher = asyncio.get_running_loop().create_task(_watch(target, view, holder))
        try:
            yield
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])


async def _watch(target: Target, view: ServerView, holder: int) -> None:
    seen: set[tuple[int, str]] = set()
    with contextlib.suppress(psycopg.OperationalError):  # the server went away, and the lock with it
        while True:
            for backend in await view.backends():
                told = (backend.pid, backend.query or "")
                worker = target.worker_of(backend.pid)
                # For an instant a backend is blocked and does not say yet on what: the next look tells.
                waits = holder in backend.blocked_by and backend.wait_event_type is not None
                if waits and worker and told not in seen:
                    seen.add(told)
                    wait = f"{backend.wait_event_type}/{backend.wait_event}"
                    target.recorder.record(Blocked(worker, backend.pid, holder, wait, backend.query or ""))
            await asyncio.sleep(_LOOK_SECONDS)
