"""A pooler stands between a worker and the database, and gives it another session for each transaction."""

import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psycopg

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.target import Target, Victim, has_victim, shown
from harness.postgres.account import server_account
from harness.postgres.address import Address
from harness.processes.worker import WorkerProcess

PROGRAM = "pgbouncer"
ADMIN = "queueproof_admin"
READY_SECONDS = 5.0
SERVER_CONNECTIONS = 4


def installed(_: Target) -> str | None:
    """Needs pgbouncer to be installed."""
    return None if _program() else "PgBouncer is not installed here"


@fault("behind a pooler", strikes="connection", needs=[has_victim, installed], holds_seconds=3.0, is_borne=True)
async def pooler_in_transaction_mode(target: Target) -> AsyncIterator[Landed]:
    """A worker is restarted behind PgBouncer in transaction mode; healed by another restart.

    What lives in a session does not live there: LISTEN, session locks, SET, options given at start-up (a statement_timeout,
    an isolation level), and, before PgBouncer 1.21, prepared statements. Sessions change among the connections of one
    worker; what goes wrong when two *workers* meet in one session is not shown, since each has a pooler of its own.
    """
    async with _behind(target, target.victim) as told:
        yield Landed(told, target.victim.number)


@fault(
    "every worker behind a pooler",
    strikes="connection",
    needs=[has_victim, installed],
    holds_seconds=5.0,
    lands_within_seconds=30.0,
    heals_within_seconds=30.0,
    is_borne=True,
)
async def pooler_in_transaction_mode_for_all(target: Target) -> AsyncIterator[Landed]:
    """Every worker is restarted behind a PgBouncer of its own, in transaction mode: nobody has a session left."""
    async with AsyncExitStack() as stack:
        told = [
            await stack.enter_async_context(_behind(target, worker)) for worker in target.everyone if worker.running
        ]
        yield Landed("; ".join(told))


@asynccontextmanager
async def _behind(target: Target, victim: Victim) -> AsyncIterator[str]:
    """One worker behind one pooler, which leads to the worker's own wire."""
    if target.watchdog is None or target.folder is None:
        raise Inapplicable("no process of ours may be started here")
    port = _free_port()
    pooler = WorkerProcess("PgBouncer")
    config = _config(target, victim, target.folder / f"pgbouncer-{victim.number}.ini", port)
    try:
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        await pooler.start(_command(config), target.folder, env, config.with_suffix(".log"), target.watchdog)
        address = target.worker.via("127.0.0.1", port)

        async def answered() -> str | None:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    address.at(PROGRAM).as_user(ADMIN).dsn(), autocommit=True, connect_timeout=2
                )
            except psycopg.OperationalError:
                if not pooler.running:
                    raise Inapplicable(f"PgBouncer does not run here: {pooler.tail(3)}") from None
                return None
            async with connection:
                row = await (await connection.execute("show version")).fetchone()
                return str(row[0]) if row else None

        version = await shown(answered, within_seconds=READY_SECONDS, reason="PgBouncer to answer")
        config.unlink()  # it has been read, and may hold a password
        await victim.kill()
        await victim.start_with({"DATABASE_URL": address.url(), **address.env()})
        pids = await _backends_of_one_client(address)
        yield (
            f"worker {victim.number} is connected through port {port}, where {version} gave one client the backends"
            f" {' and '.join(map(str, pids))}, one transaction after the other"
        )
    finally:
        config.unlink(missing_ok=True)
        if victim.running:
            await victim.kill()
        if pooler.running:
            await pooler.kill()
        await victim.start()


async def _backends_of_one_client(address: Address) -> list[int]:
    """Two backends that ran transactions in a row: the sessions are shared."""
    async with await psycopg.AsyncConnection.connect(
        address.dsn(), autocommit=True, connect_timeout=2, prepare_threshold=None
    ) as connection:

        async def pid() -> int:
            row = await (await connection.execute("select pg_backend_pid()")).fetchone()
            assert row is not None
            return int(row[0])

        async def two() -> list[int] | None:
            pids = [await pid(), await pid()]
            return pids if pids[0] != pids[1] else None

        return await shown(two, within_seconds=READY_SECONDS, reason="the pooler to change the backend")


def _program() -> str | None:
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin:/usr/local/sbin")


def _command(config: Path) -> list[str]:
    program = _program()
    assert program is not None, "asked before"
    account = server_account()  # it refuses to run as root, as PostgreSQL does
    return [program, *(["-u", account.name] if account.uid is not None else []), str(config)]


def _config(target: Target, victim: Victim, file: Path, port: int) -> Path:
    """Anybody may come in, from here, as the worker's role: it stands in front of the worker's own wire."""
    worker = target.worker
    password = f" password={worker.password}" if worker.password is not None else ""
    file.write_text(
        "[databases]\n"
        f"{worker.dbname} = host=127.0.0.1 port={victim.wire.port} user={worker.user}{password}\n"
        "[pgbouncer]\n"
        "listen_addr = 127.0.0.1\n"
        f"listen_port = {port}\n"
        "unix_socket_dir =\n"
        "auth_type = any\n"
        f"admin_users = {ADMIN}\n"
        "pool_mode = transaction\n"
        f"default_pool_size = {SERVER_CONNECTIONS}\n"
        f"min_pool_size = {SERVER_CONNECTIONS}\n"
        "server_round_robin = 1\n"  # else a worker alone on its pooler would mostly meet its own session again
        "ignore_startup_parameters = extra_float_digits, options, application_name, statement_timeout, lock_timeout\n",
        encoding="utf-8",
    )
    file.chmod(0o600)
    return file


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
