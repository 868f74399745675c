"""Gates inside the server: a chosen worker stops after its snapshot, or inside its COMMIT, until the gate opens.

A gate is an advisory lock. The harness holds it exclusively (closed); our triggers in the subject's transaction take it
shared and give it back at once.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from harness.history.recorder import DeadlinePassed
from harness.postgres.statements import statement

PLACES_APART = 10_000  # more than there are workers in a play
MOST_PLACES = 100_000
RECLOSE_SECONDS = 5.0


@dataclass(frozen=True)
class Parked:
    """One backend waiting at a gate, in the server's words."""

    worker: int
    place: int  # which write of its message it is at, from 1; 0 at a gate that has one place
    pid: int
    state: str
    wait_event_type: str | None
    wait_event: str | None
    xid: str | None
    query: str | None  # as much of its text as the server keeps, 1 kB by default

    def told(self) -> str:
        """The sentence that a report shows as proof."""
        wait = f"{self.wait_event_type}/{self.wait_event}" if self.wait_event_type else "nothing"
        xid = f"transaction {self.xid} in progress" if self.xid else "no transaction id yet"
        return f"backend {self.pid} is {self.state}, waits for {wait}, {xid}"


class Gates:
    """All gates of one play, held by one connection: when it ends, every gate is open."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self.connection = connection
        self._closed: set[tuple[int, int]] = set()

    async def move_to(self, connection: psycopg.AsyncConnection) -> None:
        """Go on with a new connection, because the old one has ended and opened every gate: close them again."""
        self.connection = connection
        closed, self._closed = self._closed, set()
        for gate, lock in closed:
            await self._close(gate, lock, RECLOSE_SECONDS)

    async def shut(self, gate: int, worker: int, *, place: int = 0, within_seconds: float = 5) -> None:
        """Close a gate, at one place of it, before the worker gets there.

        In a loop of tries: a request that waits would queue behind a backend that is passing, and park others behind it.
        """
        await self._close(gate, place * PLACES_APART + worker, within_seconds)

    async def _close(self, gate: int, lock: int, within_seconds: float) -> None:
        if (gate, lock) in self._closed:
            return
        deadline = time.monotonic() + within_seconds
        while True:
            cursor = await self.connection.execute("select pg_try_advisory_lock(%s, %s)", (gate, lock))
            row = await cursor.fetchone()
            if row and row[0]:
                self._closed.add((gate, lock))
                return
            if time.monotonic() > deadline:
                raise DeadlinePassed(
                    f"waited {within_seconds:g} s to close gate {gate} for worker {lock % PLACES_APART}"
                )
            await asyncio.sleep(0.005)

    async def open(self, gate: int, worker: int) -> None:
        """Open a gate; those parked at it go on. Opening an open gate does nothing."""
        await self.open_together(gate, [worker])

    async def open_together(self, gate: int, workers: Sequence[int]) -> None:
        """Open one gate for many workers by one statement, so that the server lets them go at one instant."""
        closed = [lock for of, lock in self._closed if of == gate and lock % PLACES_APART in workers]
        self._closed -= {(gate, lock) for lock in closed}
        if closed:
            await self.connection.execute(
                "select pg_advisory_unlock(%s, lock) from unnest(%s::integer[]) as lock", (gate, closed)
            )

    async def open_all(self) -> None:
        """Open every gate."""
        self._closed.clear()
        await self.connection.execute("select pg_advisory_unlock_all()")

    async def parked(self, gate: int, workers: Sequence[int]) -> list[Parked]:
        """One look at who waits at a gate now. Uses its own connection's snapshot of the lock table."""
        cursor = self.connection.cursor(row_factory=class_row(Parked))
        await cursor.execute(
            statement("look_at_gate", places_apart=str(PLACES_APART)), {"gate": gate, "workers": list(workers)}
        )
        return await cursor.fetchall()
