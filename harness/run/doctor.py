"""Examines whether this machine can run a gate, and removes what a killed run left in somebody's database."""

import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from harness.contracts.problem import BadInput, EnvironmentFailed, Problem
from harness.postgres import clock as server_clock
from harness.postgres.address import Address
from harness.postgres.borrowed import MARKER, drop_leftovers, take_for_this_run
from harness.postgres.cluster import open_cluster
from harness.postgres.guest import open_guest, sweep
from harness.postgres.options import ServerOption, parse_server, without_password
from harness.processes.watchdog import Watchdog

OLDEST_PYTHON = (3, 11)
LEAST_FREE_MB = 500


@dataclass(frozen=True)
class Examined:
    """One thing that was looked at."""

    what: str
    fine: bool
    told: str


async def examine(server: ServerOption) -> list[Examined]:
    """Look at everything a gate needs; starts and stops the server that would be used."""
    version = ".".join(map(str, sys.version_info[:3]))
    free_mb = shutil.disk_usage(tempfile.gettempdir()).free // 1_000_000
    clock = server_clock.library()
    found = [
        Examined("Python", sys.version_info >= OLDEST_PYTHON, version),
        Examined("free disk", free_mb >= LEAST_FREE_MB, f"{free_mb} MB, {LEAST_FREE_MB} MB are needed"),
        Examined("skewed clocks", True, "libfaketime is here" if clock else "not here: those scenarios do not apply"),
        Examined("curl", True, shutil.which("curl") or "not here: shell workers need it"),
    ]
    try:
        async with AsyncExitStack() as stack:
            watchdog = stack.enter_context(Watchdog())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="queueproof-doctor-")))
            cluster = await stack.enter_async_context(open_cluster(server, watchdog, folder))
            rights = (
                "makes databases" if cluster.can_create_databases else "lends one database: scenarios play one by one"
            )
            hurt = "may be hurt" if cluster.may_be_hurt else "is never stopped"
            found.append(Examined("server", True, f"PostgreSQL {cluster.version} ({cluster.source}): {rights}, {hurt}"))
    except Problem as problem:
        found.append(Examined("server", False, str(problem)))
    return found


async def clean_up(dsn: str) -> list[str]:
    """Remove what killed runs have left in a database and on its server: only what is provably ours. Returns what it was."""
    try:
        fine = parse_server(dsn).kind == "dsn"
    except BadInput:
        fine = False
    if not fine:
        raise BadInput(
            f"--clean {without_password(dsn)}: not a connection string; write postgresql://user@host:port/database"
        )
    password = conninfo_to_dict(dsn).get("password")
    try:
        connection = await psycopg.AsyncConnection.connect(
            dsn, autocommit=True, application_name="queueproof doctor", connect_timeout=10
        )
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise EnvironmentFailed(
            f"cannot connect to {without_password(dsn)}: {reason.replace(str(password), '***') if password else reason}"
        ) from error
    async with connection:
        info = connection.info
        address = Address(info.host, info.port, info.user, info.dbname)
        await take_for_this_run(connection, address)
        done = await drop_leftovers(connection, address)
        cursor = await connection.execute("select 1 from pg_namespace where nspname = %s", (MARKER,))
        marked = await cursor.fetchone() is not None
    done += await sweep(parse_server(dsn))
    if marked:  # coming in as a run does empties what a run had found empty and marked as its own
        async with open_guest(parse_server(dsn), allow_existing=True):
            done.append(f"what {address.user} had in the database {address.dbname}, which a run had found empty")
    return [f"dropped {each}" for each in done] or ["nothing of ours was there"]
