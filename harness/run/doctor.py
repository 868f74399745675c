"""Examines whether this machine can run a gate, and removes what a killed run left in somebody's database."""

import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from harness.contracts.problem import BadInput, EnvironmentFailed, Problem
from harness.postgres import clock as server_clock
from harness.postgres.cluster import open_cluster
from harness.postgres.guest import sweep
from harness.postgres.options import ServerOption, parse_server, without_password
from harness.postgres.statements import statement
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
    """Remove, by name, our schema and triggers from a database, and what killed runs made beside it. Returns what was done."""
    try:
        fine = parse_server(dsn).kind == "dsn"
    except BadInput:
        fine = False
    if not fine:
        raise BadInput(
            f"--clean {without_password(dsn)}: not a connection string; write postgresql://user@host:port/database"
        )
    done: list[str] = []
    try:
        connection = await psycopg.AsyncConnection.connect(
            dsn, autocommit=True, application_name="queueproof doctor", connect_timeout=10
        )
    except psycopg.Error as error:
        raise EnvironmentFailed(f"cannot connect: {str(error).strip().splitlines()[0]}") from error
    async with connection:
        cursor = await connection.execute(
            "select tgrelid::regclass::text, tgname from pg_trigger where tgname like 'queueproof\\_%' and not tgisinternal"
            " and tgparentid = 0"
        )
        try:
            await connection.execute("set lock_timeout = '5s'")
            for table, trigger in await cursor.fetchall():
                await connection.execute(statement("drop_triggers", trigger=trigger, table=table))
                done.append(f"dropped trigger {trigger} on {table}")
            await connection.execute(statement("drop_schema"))
        except psycopg.Error as error:
            raise EnvironmentFailed(
                f"could not remove everything: {str(error).strip().splitlines()[0]}; end the sessions that hold it, and"
                " run this again"
            ) from error
        done.append("schema queueproof is not there (any more)")
    return [*done, *await sweep(parse_server(dsn))]
