"""The stage of plain SQL sessions, as isolationtester has them: each session's steps in their order, all orders between sessions.

Speaks to libpq directly: one step is one query, sent without waiting, and a session that does not answer is asked about at
the server, never judged by time alone.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import psycopg
from psycopg import pq

from harness.contracts.problem import EnvironmentFailed
from harness.explore.footprint import EVERYTHING, Footprint
from harness.explore.reset import Reset, query
from harness.explore.schedule import Move, step
from harness.explore.stage import Diverged, Ending
from harness.postgres.address import Address

STEP_SECONDS = 20.0
DEADLOCK_MS = 20
_FIRST_LOOK_SECONDS = 0.002


@dataclass(frozen=True)
class Script:
    """What isolationtester calls a spec. ``check`` is a query whose every row is a violation, named by its first column."""

    setup: str
    teardown: str
    sessions: tuple[tuple[str, ...], ...]
    check: str = ""

    def as_spec(self) -> str:
        """For isolationtester: no permutations, so all of them."""
        lines = [f"setup {{ {self.setup} }}", f"teardown {{ {self.teardown} }}"]
        for number, steps in enumerate(self.sessions, 1):
            lines.append(f'session "s{number}"')
            lines += [f"step s{number}_{place} {{ {text} }}" for place, text in enumerate(steps, 1)]
        return "\n".join((*lines, ""))


class _Session:
    """One connection: at most one query under way."""

    def __init__(self, number: int, connection: psycopg.AsyncConnection, steps: Sequence[str]) -> None:
        self.number = number
        self.connection = connection
        self.pgconn = connection.pgconn
        self.steps = [text.encode() for text in steps]
        self.next = 0
        self.busy = False
        self.blocked = False
        self.errors: list[str] = []
        self.news: asyncio.Event
        self.pid = self.pgconn.backend_pid

    def send(self) -> None:
        """Begin the next step."""
        self.pgconn.send_query(self.steps[self.next])
        self.next += 1
        self.busy = True

    def readable(self) -> None:
        """The socket has something: take what there is."""
        self.pgconn.consume_input()
        while self.busy and not self.pgconn.is_busy():
            result = self.pgconn.get_result()
            if result is None:
                self.busy = self.blocked = False
                self.news.set()
            elif result.status == pq.ExecStatus.FATAL_ERROR:
                self.errors.append((result.error_field(pq.DiagnosticField.SQLSTATE) or b"?????").decode())


class SessionStage:
    """A script on a database of its own. Sessions live through all schedules."""

    def __init__(self, address: Address, script: Script) -> None:
        self._address = address
        self._script = script
        self._sessions: list[_Session] = []
        self._news = asyncio.Event()
        self._admin: psycopg.AsyncConnection
        self._reset: Reset
        self._pids: list[int] = []

    async def __aenter__(self) -> Self:
        self._admin = await self._connect("admin")
        await self._admin.execute("create schema if not exists queueproof")
        for table in ("truth", "enqueued"):  # what a reset empties besides the script's own
            await self._admin.execute(f"create table if not exists queueproof.{table} ()")
        await self._admin.execute(self._script.setup)
        self._reset = Reset(await self._connect("reset"))
        await self._reset.prepare()
        loop = asyncio.get_running_loop()
        for number, steps in enumerate(self._script.sessions, 1):
            session = _Session(number, await self._connect(f"s{number}"), steps)
            await self._hurry_deadlocks(session.connection)
            session.news = self._news
            self._sessions.append(session)
            loop.add_reader(session.pgconn.socket, session.readable)
        self._pids = [session.pid for session in self._sessions]
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for session in self._sessions:
            loop.remove_reader(session.pgconn.socket)
            await session.connection.close()
        await self._reset.connection.close()
        await self._admin.execute(self._script.teardown)
        await self._admin.close()

    async def _connect(self, purpose: str) -> psycopg.AsyncConnection:
        try:
            return await psycopg.AsyncConnection.connect(
                self._address.dsn(), autocommit=True, application_name=f"queueproof {purpose}"
            )
        except psycopg.Error as error:
            raise EnvironmentFailed(f"cannot connect to {self._address.shown()}: {str(error).strip()}") from error

    @staticmethod
    async def _hurry_deadlocks(connection: psycopg.AsyncConnection) -> None:
        try:
            await connection.execute(f"set deadlock_timeout = {DEADLOCK_MS}")
        except psycopg.errors.InsufficientPrivilege:
            return  # then the server takes its own second over each

    async def begin(self) -> None:
        """Nobody in a transaction, the tables as after setup."""
        for session in self._sessions:
            if session.busy:
                session.pgconn.get_cancel().cancel()
        await self._settle(all_done=True)
        for session in self._sessions:
            if session.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                session.pgconn.send_query(b"rollback")
                session.busy = True
                await self._settle(all_done=True)
            session.next, session.blocked = 0, False
            session.errors.clear()
        await self._reset.run()

    async def enabled(self) -> Sequence[Move]:
        moves = self._moves()
        if not moves and any(session.busy for session in self._sessions):
            await self._settle(all_done=True)
            moves = self._moves()
        return moves

    def _moves(self) -> list[Move]:
        return [step(each.number) for each in self._sessions if not each.busy and each.next < len(each.steps)]

    async def perform(self, move: Move) -> Footprint:
        session = self._sessions[move.number - 1]
        if session.busy or session.next >= len(session.steps):
            raise Diverged(f"session {move.number} cannot move")
        session.send()
        await self._settle()
        return EVERYTHING

    async def _settle(self, *, all_done: bool = False) -> None:
        """Until each session has answered or is blocked; with ``all_done``, until all have."""
        deadline = time.monotonic() + STEP_SECONDS
        look = _FIRST_LOOK_SECONDS
        while True:
            self._news.clear()
            busy = [session for session in self._sessions if session.busy]
            if not busy or (not all_done and all(session.blocked for session in busy)):
                return
            try:
                async with asyncio.timeout(look):
                    await self._news.wait()
                    look = _FIRST_LOOK_SECONDS
                    continue
            except TimeoutError:
                look = min(look * 1.5, 0.02)
            cursor = await self._admin.execute(
                query("list_blocked"), {"waiting": [session.pid for session in busy], "all": self._pids}
            )
            blocked = {int(row[0]) for row in await cursor.fetchall()}
            for session in busy:
                session.blocked = session.pid in blocked
            if time.monotonic() > deadline:
                told = ", ".join(str(session.number) for session in busy)
                raise EnvironmentFailed(f"sessions {told} did not answer within {STEP_SECONDS:g} s")

    async def end(self) -> Ending:
        if not self._script.check:
            return Ending()
        cursor = await self._admin.execute(self._script.check.encode())
        return Ending(tuple(str(row[0]) for row in await cursor.fetchall()))
