"""Somebody's long transaction holds one job's row, or the whole table as DDL does; who waits behind it is recorded."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
from psycopg import sql

from harness.contracts.subject import JobsMapping
from harness.history.events import Blocked, FaultHealed, FaultLanded
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.postgres.mapping import JobTable
from harness.postgres.view import ServerView

ROW_HELD, TABLE_LOCKED = "row held", "table locked"
LOCK_TIMEOUT_MS = 5000
_LOOK_SECONDS = 0.02


@asynccontextmanager
async def row_held(
    connection: psycopg.AsyncConnection,
    mapping: JobsMapping,
    table: JobTable,
    key: str,
    around: "Bystanders",
) -> AsyncIterator[int]:
    """Hold the row of ``key`` in an open transaction. Yields the pid of the holder."""
    query = sql.SQL(f"select ({mapping.id})::text from {table.name} where ({mapping.key}) = %s for update")
    async with _held(connection, query, (key,), ROW_HELD, key, around) as pid:
        yield pid


@asynccontextmanager
async def table_locked(
    connection: psycopg.AsyncConnection, table: JobTable, around: "Bystanders"
) -> AsyncIterator[int]:
    """Hold the lock that ALTER TABLE takes. Yields the pid of the holder."""
    query = sql.SQL(f"lock table {table.name} in access exclusive mode")
    async with _held(connection, query, (), TABLE_LOCKED, None, around) as pid:
        yield pid


class Bystanders:
    """Who is seen waiting behind a holder, each backend and statement once."""

    def __init__(self, view: ServerView, recorder: PlayRecorder, worker_of: Callable[[int], int]) -> None:
        self._view = view
        self.recorder = recorder
        self._worker_of = worker_of
        self._seen: set[tuple[int, str]] = set()

    async def look(self, holder: int) -> None:
        """One look at the server."""
        for backend in await self._view.backends():
            told = (backend.pid, backend.query or "")
            worker = self._worker_of(backend.pid)
            if holder in backend.blocked_by and worker and told not in self._seen:
                self._seen.add(told)
                wait = f"{backend.wait_event_type}/{backend.wait_event}"
                self.recorder.record(Blocked(worker, backend.pid, holder, wait, backend.query or ""))


@asynccontextmanager
async def _held(
    connection: psycopg.AsyncConnection,
    query: sql.SQL,
    values: tuple[str, ...],
    fault: str,
    key: str | None,
    around: Bystanders,
) -> AsyncIterator[int]:
    recorder = around.recorder
    pid = connection.info.backend_pid
    async with connection.transaction(force_rollback=True):
        await connection.execute(f"set local lock_timeout = {LOCK_TIMEOUT_MS}")
        try:
            cursor = await connection.execute(query, values)
        except psycopg.errors.LockNotAvailable as error:
            raise DeadlinePassed(f"waited {LOCK_TIMEOUT_MS} ms for the lock of the fault '{fault}'") from error
        rows = await cursor.fetchall() if cursor.description else [("the whole table",)]
        if not rows:
            raise DeadlinePassed(f"the fault '{fault}' found no row of job {key!r}")
        recorder.record(FaultLanded(fault, f"backend {pid} of ours holds {rows[0][0]}", key=key))
        watcher = asyncio.get_running_loop().create_task(_watch(around, pid))
        try:
            yield pid
        finally:
            watcher.cancel()
    recorder.record(FaultHealed(fault))


async def _watch(around: Bystanders, pid: int) -> None:
    while True:
        await around.look(pid)
        await asyncio.sleep(_LOOK_SECONDS)
