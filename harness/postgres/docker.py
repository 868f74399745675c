"""A server in a container: ours to hurt, by signals to its first process and by the engine.

testcontainers makes it; ending it is the watchdog's business as well, so that engine's own reaper is not needed. The port on
our side is chosen by us, because the engine would choose another at each start.
"""

import asyncio
import contextlib
import secrets
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address
from harness.postgres.clock import ServerClock, library
from harness.postgres.cluster import Cluster
from harness.postgres.databases import Databases, connect
from harness.postgres.options import ServerOption
from harness.postgres.owned import WORKER_ROLE, reload_settings
from harness.postgres.server import OWNER, STOP_SIGNALS, Guard, StopMode

PORT = 5432
STOP_SECONDS = 15.0
START_SECONDS = 60.0
CLOCK_FOLDER = "/queueproof-clock"
POLL_SECONDS = 0.05
PORTS = range(20_000, 32_768)
PORT_TRIES = 100
LOOPBACK = ("localhost", "127.0.0.1")

Result = TypeVar("Result")


class ContainerCluster(Cluster):
    """PostgreSQL in a container that nobody else uses."""

    worker_role = WORKER_ROLE
    can_create_databases = True
    may_be_hurt = True

    def __init__(self, container: Any, address: Address, image: str, clock: ServerClock | None) -> None:
        self.address = address
        self.worker_password = secrets.token_urlsafe(16)
        self.source = f"container of {image}"
        self.clock = clock
        self._container = container
        self._going_down = False
        self._databases = Databases(address)

    async def prepare(self) -> None:
        """Ask for the version, and make the workers' role."""
        async with await connect(self.address) as connection:
            self.version = (connection.info.parameter_status("server_version") or "unknown").split()[0]
            await connection.execute(
                sql.SQL("create role {} login password {}").format(
                    sql.Identifier(self.worker_role), sql.Literal(self.worker_password)
                )
            )

    async def create_database(self, name: str, template: str | None = None) -> Address:
        return await self._databases.create(name, template)

    async def drop_database(self, name: str) -> None:
        await self._databases.drop(name)

    async def stop(self, mode: StopMode = "fast") -> None:
        """The signal to the first process of the container, which is the postmaster."""
        self._going_down = True
        await _in_thread(lambda: self._container.kill(signal=STOP_SIGNALS[mode].name))
        deadline = time.monotonic() + STOP_SECONDS
        while await _in_thread(self._status) == "running":
            if time.monotonic() > deadline:
                await _in_thread(self._container.kill)
                deadline += STOP_SECONDS
            await asyncio.sleep(POLL_SECONDS)
        self._going_down = False

    async def start(self) -> None:
        if self._going_down and await _in_thread(self._status) == "running":  # a stop that was cancelled
            await self.stop("immediate")
        self._going_down = False
        if await _in_thread(self._status) != "running":
            await _in_thread(self._container.start)
        await reachable(self.address)

    def backend_kill9(self, pid: int) -> None:
        code, said = self._container.exec_run(["sh", "-c", f"kill -9 {pid}"], user="root")
        if code != 0:
            raise EnvironmentFailed(f"backend {pid} cannot be killed in its container: {said.decode(errors='replace')}")

    async def reload(self, settings: Mapping[str, str | None]) -> None:
        await reload_settings(self.address, settings)

    def keep(self) -> str:
        return f"{super().keep()}  # to end it: docker rm --force {self._container.name}"

    def _status(self) -> str:
        self._container.reload()
        return str(self._container.status)


@contextlib.asynccontextmanager
async def open_container(
    option: ServerOption, watchdog: Guard, folder: Path, *, clock: bool
) -> AsyncIterator[ContainerCluster]:
    """A server in a fresh container, removed at the end unless it is kept; its output is left in ``folder/server.log``."""
    image = option.image or ""
    name = f"queueproof-{secrets.token_hex(8)}"
    password = secrets.token_urlsafe(16)
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="queueproof-clock-") as shared:
        watchdog.watch_folder(Path(shared))
        watchdog.watch_container(name)
        kept = False
        made = _container(image, name, password, port)
        moved = _with_clock(made, Path(shared)) if clock else None
        try:
            try:
                await _in_thread(made.start)
            except Exception as error:
                raise EnvironmentFailed(
                    f"a container of {image} cannot be started: {_last_line(error)}; is the Docker engine running, and the"
                    " image there?"
                ) from error
            address = Address(made.get_container_host_ip(), port, OWNER, "postgres", password)
            cluster = ContainerCluster(made.get_wrapped_container(), address, image, moved)
            await reachable(address)
            await cluster.prepare()
            try:
                yield cluster
            finally:
                kept = cluster.kept
                with contextlib.suppress(Exception):
                    (folder / "server.log").write_bytes(await _in_thread(cluster._container.logs))
        finally:
            if not kept:
                await _in_thread(lambda: _removed(made))
            watchdog.forget_container(name)
            watchdog.forget_folder(Path(shared))


def _container(image: str, name: str, password: str, port: int) -> Any:
    try:
        from testcontainers.community.postgres import PostgresContainer
        from testcontainers.core.config import testcontainers_config
    except ImportError as error:
        raise EnvironmentFailed(
            "--server docker needs testcontainers: pip install 'queueproof[docker]', or use --server embedded"
        ) from error
    testcontainers_config.ryuk_disabled = True

    class Ours(PostgresContainer):  # type: ignore[misc, unused-ignore]
        def _connect(self) -> None:
            """We wait ourselves, from outside: theirs needs psql in the image, and prints the password when it fails."""

    try:
        container = Ours(image, username=OWNER, password=password, dbname="postgres", driver=None)
    except Exception as error:
        raise EnvironmentFailed(f"the Docker engine cannot be reached: {_last_line(error)}") from error
    ports: Any = container.ports  # an address may stand beside the port, which its type does not say
    ports[PORT] = ("127.0.0.1", port) if _is_here(container) else port
    container.with_name(name)
    container.with_command(["-c", "fsync=off", "-c", "max_connections=200", "-c", "timezone=UTC"])
    return container


def _is_here(container: Any) -> bool:
    """Whether the engine publishes ports on this machine's own loopback; seen from inside a container it does not."""
    client = container.get_docker_client()
    return client.get_connection_mode().value == "docker_host" and client.host() in LOOPBACK


def _removed(container: Any) -> None:
    """Remove it; one that the watchdog has removed already is no error."""
    from docker.errors import NotFound  # type: ignore[import-untyped]

    with contextlib.suppress(NotFound):
        container.stop(force=True, delete_volume=True)


def _with_clock(container: Any, shared: Path) -> ServerClock | None:
    """Lend the image our library: a clock that can be moved, in any image whose C library is the usual one."""
    found = library()
    if found is None:
        return None
    shared.chmod(0o755)
    ours = shared / found.name
    ours.write_bytes(found.read_bytes())
    ours.chmod(0o755)
    clock = ServerClock(shared / "clock", ours)
    inside = Path(CLOCK_FOLDER)
    for variable, value in clock.environment(inside / "clock", inside / found.name).items():
        container.with_env(variable, value)
    container.with_kwargs(user=OWNER)  # from the start: what root shares with its clock is shut to others
    container.with_volume_mapping(str(shared), CLOCK_FOLDER, "ro")
    return clock


async def reachable(address: Address) -> None:
    """Wait until it answers, and goes on answering: an image may start a first, passing server to set itself up."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            async with asyncio.timeout(5), await connect(address) as connection:
                await connection.execute("select 1")
                return
        except (psycopg.OperationalError, TimeoutError) as error:
            if time.monotonic() > deadline:
                raise EnvironmentFailed(
                    f"the server in the container did not accept connections within {START_SECONDS:g} s: {error}"
                ) from error
        await asyncio.sleep(POLL_SECONDS)


async def _in_thread(work: Callable[[], Result]) -> Result:
    """The engine's client blocks. A thread cannot be cancelled: when we are, wait for its end."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _free_port() -> int:
    """Not one from which the system serves outgoing connections: such a connection would take it while the server is down."""
    for _ in range(PORT_TRIES):
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise EnvironmentFailed(f"no free port from {PORTS[0]} to {PORTS[-1]}: {PORT_TRIES} were tried; end some programs")


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
