"""Installs the schema, or brings an older one up to date beside live workers.

A fresh install runs ``sql/schema``; an upgrade runs the steps that ``sql/migrations/NNNN.list`` names, each its own
transaction, each safe to run again: after a crash, or when a lock was not free in time, the whole is simply run again.
"""

import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import psycopg

from reference_queue.statements import packaged, schema

CURRENT = 2
REPEAT = "-- repeat until no row changes"
LOCK_TRIES = 20


class CannotMigrate(Exception):
    """The message says which step did not go through, what was done before it, and what to do."""


def installed_version(connection: psycopg.Connection[Any]) -> int | None:
    """None: there is no queue here."""
    row = connection.execute("select to_regclass('queue_schema')").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute(packaged("read_schema")).fetchone()
    return row[0] if row else None


def install(connection: psycopg.Connection[Any]) -> None:
    """A fresh schema, all or nothing. The connection must be in autocommit mode."""
    with connection.transaction():
        for _, statement in schema():
            connection.execute(statement)


def migrate(
    connection: psycopg.Connection[Any],
    *,
    lock_timeout_seconds: float = 2.0,
    pause: Callable[[float], None] = time.sleep,
    told: Callable[[str], None] = lambda _line: None,
) -> int:
    """Bring the schema to CURRENT and return that. The connection must be in autocommit mode."""
    found = installed_version(connection)
    if found is None:
        install(connection)
        told(f"installed version {CURRENT}")
        return CURRENT
    if found > CURRENT:
        raise CannotMigrate(f"the schema has version {found}, newer than this program's {CURRENT}: update the program")
    connection.execute("select set_config('lock_timeout', %s, false)", (f"{int(lock_timeout_seconds * 1000)}ms",))
    for version in range(found + 1, CURRENT + 1):
        _drop_invalid_indexes(connection)
        for name in steps(version):
            told(f"{version}: {name}")
            _step(connection, name, pause)
    connection.execute("reset lock_timeout")
    return CURRENT


def steps(version: int) -> list[str]:
    """The files of one migration, in order, without their suffix."""
    text = resources.files(__package__).joinpath("sql", "migrations", f"{version:04}.list").read_text(encoding="utf-8")
    return [line.removesuffix(".sql") for line in text.split()]


def _step(connection: psycopg.Connection[Any], name: str, pause: Callable[[float], None]) -> None:
    text = packaged(name)
    # Beside live workers an index must be made without shutting out their writes.
    text = text.replace("index if not exists", "index concurrently if not exists")
    for tries in range(1, LOCK_TRIES + 1):
        try:
            while True:
                cursor = connection.execute(text)
                if REPEAT not in text or cursor.rowcount == 0:
                    return
        except psycopg.errors.LockNotAvailable as error:
            # A short wait for the lock, then away: a DDL statement that queues for one makes everybody queue behind it.
            if tries == LOCK_TRIES:
                raise CannotMigrate(
                    f"{name}.sql did not get its lock in {LOCK_TRIES} tries; what came before it is done and stays; "
                    "look for a long transaction in pg_stat_activity and run the same command again"
                ) from error
            pause(min(0.1 * 2**tries, 5.0))


def _drop_invalid_indexes(connection: psycopg.Connection[Any]) -> None:
    for (statement,) in connection.execute(packaged("drop_invalid_index"), {}).fetchall():
        connection.execute(statement)
