"""A connection that runs one prepared statement at a time, by libpq's own asynchronous calls.

A claim is one short statement, and on a busy queue the client's work for it costs more than the server's. psycopg connects,
converts values and reads errors here; its cursors, which can do far more than is needed, are left out. ``queueproof bench
claim`` measures what that saves.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import DictRow
from psycopg.types.string import TextLoader

FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)
ENDS_THE_SESSION = (b"FATAL", b"PANIC")
# A pooler in transaction mode gave us a server connection that does not know our statement, or knows it already.
POOLED = ("26000", "42P05")
# A column's type was changed since the statement was prepared: the server refuses to run it under that name for ever.
STALE_PLAN = "RevalidateCachedQuery"
COPIES = (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH)
PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(%))")


class ConnectionLost(Exception):
    """The connection is gone, and with it the answer. The argument says what was seen."""


class UnreadableAnswer(Exception):
    """The statement was run and is committed, and Python has no value for what it returned."""


class PreparedConnection:
    """Wraps a connection in autocommit mode, which nobody else uses from then on.

    Not for use by two tasks at once. A task that is cancelled inside ``run`` leaves it useless: close it.
    Points in time come as text: Python has none for ``infinity``, or before year 1, and a claim's answer must not be lost for it.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        connection.adapters.register_loader("timestamptz", TextLoader)
        self._values = Transformer(connection)
        self._names: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._generation = 0
        self._prepares = True
        self._lost: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        # Registered once, not for each statement; so a server that goes away is noticed at once, also while we are idle.
        self._loop.add_reader(self._socket, self._read)

    @property
    def lost(self) -> bool:
        """Whether it is useless, as far as has been seen."""
        return self._lost is not None

    async def run(self, text: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Run a statement with ``%(name)s`` placeholders.

        Raises ConnectionLost, UnreadableAnswer, or the server's refusal as psycopg names it.
        """
        query, names = _numbered(text)
        missing = [name for name in names if name not in values]
        if missing:
            raise psycopg.ProgrammingError(f"the statement asks for %({missing[0]})s, and there is no such value")
        parameters = self._values.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        generation = self._generation
        while True:
            try:
                return await self._ask(text, query, parameters)
            except psycopg.Error as error:
                stale = error.diag.source_function == STALE_PLAN
                if not self._prepares or not (stale or error.sqlstate in POOLED):
                    raise
                # Refused before it was run.
                if stale and generation == self._generation:
                    self._generation += 1  # and with it all names
                    self._names.clear()
                else:
                    self._prepares = False  # behind such a pooler nothing can stay prepared

    async def _ask(self, text: str, query: bytes, parameters: Sequence[Any]) -> list[DictRow]:
        types, formats = self._values.types or (), self._values.formats
        if not self._prepares:
            self._send(self._pg.send_query_params, query, parameters, types, formats)
            return self._rows(await self._results())
        name = self._names.get((text, types))
        if name is None:
            name = _name(query, types, self._generation)
            self._send(self._pg.send_prepare, name, query, types)
            self._rows(await self._results())
            self._names[(text, types)] = name
        self._send(self._pg.send_query_prepared, name, parameters, formats)
        return self._rows(await self._results())

    async def close(self) -> None:
        """Close the connection. May be called more than once."""
        self._hang_up("closed")
        await self._connection.close()

    def _send(self, send: Any, *arguments: Any) -> None:
        if self._lost is not None:
            raise ConnectionLost(self._lost)
        try:
            send(*arguments)
        except psycopg.OperationalError as error:
            self._hang_up(str(error))
            raise ConnectionLost(str(error)) from error

    async def _results(self) -> list[PGresult]:
        """Everything up to the server's being ready again, or to its farewell: an answer that is cut off before that is none."""
        await self._flushed()
        results: list[PGresult] = []
        while True:
            while self._pg.is_busy():
                await self._woken()
            result = self._pg.get_result()
            if result is None:
                return results
            if result.status in COPIES:  # it would be the answer for ever
                self._hang_up("COPY is not spoken here")
                raise ConnectionLost("COPY is not spoken here")
            results.append(result)
            if _ends_the_session(result):  # nothing else will come
                return results

    async def _flushed(self) -> None:
        """Large values do not fit into the socket at once."""
        try:
            while self._pg.flush():
                self._loop.add_writer(self._socket, self._wake)
                try:
                    await self._woken()
                finally:
                    self._loop.remove_writer(self._socket)
        except psycopg.OperationalError as error:
            self._hang_up(str(error))
            raise ConnectionLost(str(error)) from error

    async def _woken(self) -> None:
        if self._lost is not None:
            raise ConnectionLost(self._lost)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _read(self) -> None:
        try:
            self._pg.consume_input()
        except psycopg.OperationalError as error:
            self._hang_up(str(error))
            return
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _hang_up(self, why: str) -> None:
        """Look at the socket no more: its number may soon be somebody else's."""
        if self._lost is None:
            self._lost = why
            self._loop.remove_reader(self._socket)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionLost(why))

    def _rows(self, results: Sequence[PGresult]) -> list[DictRow]:
        for result in results:
            if result.status in FAILED:
                error = error_from_result(result, self._connection.info.encoding)
                if error.sqlstate is None or _ends_the_session(result):
                    self._hang_up(type(error).__name__)
                    raise ConnectionLost(type(error).__name__) from error
                raise error
        last = results[-1]
        if last.status != ExecStatus.TUPLES_OK:
            return []
        self._values.set_pgresult(last)
        columns = [(last.fname(at) or b"").decode() for at in range(last.nfields)]
        try:
            return self._values.load_rows(0, last.ntuples, lambda row: dict(zip(columns, row, strict=True)))
        except Exception as error:  # a loader may raise anything, and it must not be taken for a refusal
            raise UnreadableAnswer(type(error).__name__) from error


def _ends_the_session(result: PGresult) -> bool:
    return result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in ENDS_THE_SESSION


def _name(query: bytes, types: Sequence[int], generation: int) -> bytes:
    """Says what the statement is: behind a pooler, a name that counts would run what another session has prepared under it."""
    said = repr((query, tuple(types), generation)).encode()
    return b"q" + hashlib.blake2b(said, digest_size=16).hexdigest().encode()


@cache
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement with ``$1`` for its first placeholder, and so on, and their names in that order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[2]:
            return "%"
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return PLACEHOLDER.sub(number, text).encode(), tuple(names)
