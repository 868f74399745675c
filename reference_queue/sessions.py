"""A few database connections, each used for one short statement at a time, never while a handler runs.

Every statement is its own transaction. What can go wrong is told in three words: *nothing happened* (no connection, or the
server rolled back), or *unknown* (the connection broke while the answer was due).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import psycopg
from psycopg.rows import DictRow
from psycopg.types.numeric import Int8Dumper

from reference_queue.prepared import ConnectionLost, PreparedConnection, UnreadableAnswer

# The server forgets a peer that vanished, and we a server, after about ten seconds of silence.
KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "connect_timeout": 10}
CONFLICTS = ("40001", "40P01", "23505", "23P01")


class NothingHappened(Exception):
    """The statement had no effect: there was no connection to send it on."""


class Conflict(NothingHappened):
    """The statement was rolled back because of a concurrent one; the SQLSTATE is its argument."""


class Unknown(Exception):
    """The answer did not come, or cannot be read. The statement may have been committed, or may yet be."""


class Sessions:
    """Connections on demand, up to ``size``, so that one blocked statement does not hold up the others."""

    def __init__(self, conninfo: str, name: str, size: int, deadline_seconds: float) -> None:
        self._conninfo = conninfo
        self._name = name
        self._deadline_seconds = deadline_seconds
        self._free = asyncio.Semaphore(size)
        self._idle: list[PreparedConnection] = []

    async def run(self, text: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Run one statement and return its rows. Raises NothingHappened, Conflict, Unknown, or the server's refusal."""
        async with self._free:
            connection = await self._connection()
            try:
                async with asyncio.timeout(self._deadline_seconds):
                    rows = await connection.run(text, values)
            except TimeoutError as error:
                await _close(connection)
                raise Unknown("no answer in time") from error
            except ConnectionLost as error:
                await _close(connection)
                raise Unknown(type(error.__cause__ or error).__name__) from error
            except UnreadableAnswer as error:
                self._idle.append(connection)
                raise Unknown(f"an answer that cannot be read: {error}") from error
            except psycopg.Error as error:
                self._idle.append(connection)
                if error.sqlstate in CONFLICTS:
                    raise Conflict(error.sqlstate) from error
                raise
            except BaseException:
                # Cancelled half-way: nobody knows what the connection will answer next.
                await _close(connection)
                raise
            self._idle.append(connection)
            return rows

    async def close(self) -> None:
        while self._idle:
            await _close(self._idle.pop())

    async def _connection(self) -> PreparedConnection:
        while self._idle:
            idle = self._idle.pop()
            if not idle.lost:
                return idle
            await _close(idle)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                connection = await psycopg.AsyncConnection.connect(
                    self._conninfo, autocommit=True, **parameters(self._name)
                )
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise NothingHappened("no connection") from error
        prepare(connection)
        return PreparedConnection(connection)


async def _close(connection: PreparedConnection) -> None:
    with contextlib.suppress(psycopg.Error, OSError):
        await connection.close()


def parameters(name: str) -> dict[str, Any]:
    """What each connection says of itself, and how it notices that the other side is gone.

    Statements are sent as UTF-8, whatever the environment, the role or the database would have.
    """
    return {"application_name": f"reference-queue {name}"[:63], "client_encoding": "UTF8", **KEEPALIVES}


def prepare(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """All whole numbers are sent as bigint, so that a statement has one plan, not one for each size of number."""
    connection.adapters.register_dumper(int, Int8Dumper)


@contextlib.asynccontextmanager
async def opened(sessions: Sessions) -> AsyncIterator[Sessions]:
    try:
        yield sessions
    finally:
        await sessions.close()
