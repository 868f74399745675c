"""What a fault may reach: one play's database, its workers and their wires, its sink, and the server when it is ours."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import psycopg

from harness.contracts.problem import EnvironmentFailed
from harness.contracts.subject import JobsMapping
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster
from harness.postgres.mapping import JobTable
from harness.processes.watchdog import Watchdog
from harness.sink.sink import Sink
from harness.wire.proxy import Proxy
from harness.wire.session import Session

CONNECT_SECONDS = 5
LOOK_SECONDS = 0.01

Shown = TypeVar("Shown")


class Victim(Protocol):
    """A worker, as far as a fault may hurt it."""

    number: int

    @property
    def pid(self) -> int:
        """The leader of its process group."""
        ...

    @property
    def running(self) -> bool:
        """Whether its process lives (a stopped one does)."""
        ...

    @property
    def process_state(self) -> str:
        """What the process table says of its group: "running", "stopped", "zombie" or "gone"."""
        ...

    @property
    def sessions(self) -> list[Session]:
        """Its live wire connections."""
        ...

    @property
    def wire(self) -> Proxy:
        """The proxy that stands between it and the server."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to its whole process group, and record that."""
        ...

    async def kill(self, *, backend: str = "ends") -> None:
        """SIGKILL its whole process group and wait for its end."""
        ...

    async def start(self) -> object:
        """Start its process (again)."""
        ...

    async def start_with(self, env: dict[str, str]) -> object:
        """Start it with these variables besides its own."""
        ...


@dataclass(frozen=True)
class Target:
    """Where a fault is aimed. ``victims`` are the workers it is about, the first one above all.

    ``server`` is the cluster when it may be hurt by this play alone, else None, and ``not_ours`` says why.
    """

    recorder: PlayRecorder
    owner: Address
    worker: Address
    mapping: JobsMapping
    table: JobTable
    sink: Sink
    victims: Sequence[Victim]
    everyone: Sequence[Victim]
    worker_of: Callable[[int], int]
    server: Cluster | None = None
    not_ours: str = ""
    key: str | None = None
    lease_seconds: float | None = None
    watchdog: Watchdog | None = None
    folder: Path | None = None

    @property
    def victim(self) -> Victim:
        """The one worker that a fault strikes when it strikes one."""
        if not self.victims:
            raise DeadlinePassed("there is no worker for a fault to strike")
        return self.victims[0]

    @property
    def hurt(self) -> Cluster:
        """The server; ask ``own_server`` first."""
        if self.server is None:
            raise EnvironmentFailed(self.not_ours or "the server is not ours to hurt")
        return self.server

    @asynccontextmanager
    async def connected(self, purpose: str) -> AsyncIterator[psycopg.AsyncConnection]:
        """A connection of the fault's own, as the owner, in autocommit.

        A server that restarts takes it away, and with it whatever it held: leaving then is no error.
        """
        connection = await psycopg.AsyncConnection.connect(
            self.owner.dsn(),
            autocommit=True,
            application_name=f"queueproof {purpose}",
            connect_timeout=CONNECT_SECONDS,
        )
        try:
            yield connection
        finally:
            await connection.close()


def own_server(target: Target) -> str | None:
    """Needs a server of our own, that no other play uses."""
    return None if target.server is not None else target.not_ours or "the server is not ours to hurt"


def has_victim(target: Target) -> str | None:
    """Needs a worker to strike."""
    return None if target.victims else "there is no worker to strike"


async def shown(look: Callable[[], Awaitable[Shown | None]], *, within_seconds: float, reason: str) -> Shown:
    """Wait until a look at the server or the process table shows something, and return it. Raises DeadlinePassed."""
    deadline = time.monotonic() + within_seconds
    while True:
        seen = await look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise DeadlinePassed(f"waited {within_seconds:g} s for {reason}")
        await asyncio.sleep(LOOK_SECONDS)


async def comes_true(check: Callable[[], object], *, within_seconds: float, reason: str) -> None:
    """Wait until a check of ours is true. Raises DeadlinePassed."""

    async def look() -> bool:
        return bool(check())

    await shown(look, within_seconds=within_seconds, reason=reason)
