"""A cluster, ours or a guest's: databases made and dropped, and, when it is ours, stopped, started and hurt."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from harness.contracts.problem import BadInput
from harness.postgres.address import Address
from harness.postgres.clock import ServerClock
from harness.postgres.options import ServerOption
from harness.postgres.server import Guard, StopMode


class Cluster(ABC):
    """A PostgreSQL cluster as a run sees it. ``address`` is the owner's way in, ``worker_role`` owns nothing."""

    address: Address
    worker_role: str
    worker_password: str | None = None
    version: str
    source: str
    can_create_databases: bool
    may_be_hurt: bool
    can_start_slowly: bool = False
    kept: bool = False
    clock: ServerClock | None = None  # when it was opened with one that can be moved
    disk: Path | None = None  # a small disk that holds its data and nothing else, and may be filled
    programs: Path | None = None  # the folder of psql and its kin, when the server is ours

    @abstractmethod
    async def create_database(self, name: str, template: str | None = None) -> Address:
        """A new database, whose real name is in the address. ``template`` is a name given to this method before."""

    @abstractmethod
    async def drop_database(self, name: str) -> None:
        """Drop it, with everybody in it; both the name given to create_database and the real name will do."""

    def as_worker(self, address: Address) -> Address:
        """The same database for the worker role."""
        return address.as_user(self.worker_role, self.worker_password)

    async def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, on the same port."""
        await self.stop(mode)
        await self.start()

    async def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server; sessions end as ``mode`` says."""
        raise self._not_ours(f"stopped ({mode})")

    async def start(self) -> None:
        """Start a stopped server."""
        raise self._not_ours("started")

    async def start_slowly(self, seconds: float) -> None:
        """Start a stopped server that is not ready (57P03) for about so long."""
        raise self._not_ours(f"started slowly, within {seconds:g} s")

    def backend_kill9(self, pid: int) -> None:
        """SIGKILL a backend; the server then restarts all of them."""
        raise self._not_ours(f"robbed of its backend {pid}")

    async def reload(self, settings: Mapping[str, str | None]) -> None:
        """Change settings (None: back to what they were) and return when new statements see them."""
        raise self._not_ours(f"given other settings ({', '.join(settings)})")

    def keep(self) -> str:
        """Leave everything in place at the end. Returns the command that opens it."""
        self.kept = True
        return f"psql '{self.address.shown()}'"

    def _not_ours(self, deed: str) -> BadInput:
        return BadInput(
            f"{self.address.shown()} is somebody's server and is not {deed}; use --server embedded or local"
        )


@contextlib.asynccontextmanager
async def open_cluster(
    option: ServerOption,
    watchdog: Guard,
    folder: Path,
    *,
    durable: bool = False,
    allow_existing: bool = False,
    clock: bool = False,
    disk_mb: int | None = None,
) -> AsyncIterator[Cluster]:
    """The cluster that ``option`` names; a server that is ours logs to ``folder/server.log`` and leaves nothing else.

    ``durable`` keeps fsync on, ``clock`` makes its clock movable, and ``disk_mb``
    puts its data on a disk of that size, where that is possible. ``allow_existing`` accepts a guest's database that is not empty.
    """
    if option.kind == "dsn":
        from harness.postgres.guest import open_guest

        async with open_guest(option, allow_existing=allow_existing) as guest:
            yield guest
    elif option.kind == "docker":
        from harness.postgres.docker import open_container

        async with open_container(option, watchdog, folder, clock=clock) as container:
            yield container
    else:
        from harness.postgres.owned import open_owned

        async with open_owned(option, watchdog, folder, durable=durable, clock=clock, disk_mb=disk_mb) as owned:
            yield owned
