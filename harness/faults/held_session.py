"""A session of ours that keeps a transaction open. A server that restarts ends it, and that heals it too."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from harness.faults.target import Target, shown
from harness.history.recorder import DeadlinePassed

LOCK_TIMEOUT_MS = 5000
ROW_SECONDS = 8.0


@contextlib.asynccontextmanager
async def held_session(
    target: Target, query: sql.SQL, values: Sequence[object] = (), *, begin: str = "begin"
) -> AsyncIterator[tuple[int, list[tuple[Any, ...]]]]:
    """Begin, run a query, and keep the transaction open for the time of a block. Yields the pid and the query's rows."""
    async with target.connected("holder") as connection:
        await connection.execute(sql.SQL(begin))
        await connection.execute(f"set local lock_timeout = {LOCK_TIMEOUT_MS}")
        await connection.execute("set local idle_in_transaction_session_timeout = 0")
        try:
            cursor = await connection.execute(query, values)
        except psycopg.errors.LockNotAvailable as error:
            raise DeadlinePassed(f"waited {LOCK_TIMEOUT_MS} ms for a lock") from error
        rows = await cursor.fetchall() if cursor.description else []
        try:
            yield connection.info.backend_pid, rows
        finally:
            with contextlib.suppress(psycopg.OperationalError):
                await connection.rollback()


async def next_key(target: Target) -> str:
    """The key of a job of ours that has not ended, the oldest first."""
    mapping = target.mapping
    query = sql.SQL(
        f"select ({mapping.key}) from {mapping.reading_from or target.table.name}"
        f" where ({mapping.state}) in ('pending', 'retry', 'running')"
        f" and ({mapping.key}) in (select key from queueproof.enqueued) order by ({mapping.id}) limit 1"
    )
    async with target.connected("look") as connection:

        async def look() -> str | None:
            row = await (await connection.execute(query)).fetchone()
            return str(row[0]) if row else None

        return await shown(look, within_seconds=ROW_SECONDS, reason="a job that has not ended")
