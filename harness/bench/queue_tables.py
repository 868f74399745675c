"""Databases with the reference queue in them, filled to the ratios of a production table."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from harness.postgres.address import Address
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog
from reference_queue.sessions import prepare
from reference_queue.statements import schema

Connection = psycopg.Connection[DictRow]
UNIQUE_KEY = "operation_key_is_unique"


@contextlib.asynccontextmanager
async def own_server() -> AsyncIterator[Cluster]:
    """An embedded server for one benchmark, which nobody else talks to. It does not flush to disk."""
    with tempfile.TemporaryDirectory(prefix="queueproof-bench-") as folder, Watchdog() as watchdog:
        async with open_cluster(parse_server("embedded"), watchdog, Path(folder)) as cluster:
            yield cluster


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Connection]:
    """A connection as the queue's own sessions are: every statement its own transaction, prepared."""
    with psycopg.connect(address.dsn(), autocommit=True, row_factory=dict_row) as connection:
        prepare(connection)
        yield connection


@cache
def own_sql(name: str) -> str:
    """One of the benchmarks' own statements."""
    return files("harness.bench").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def run_own(connection: Connection, name: str, values: Mapping[str, Any] | None = None) -> list[DictRow]:
    """Run a statement of the benchmarks' own."""
    cursor = connection.execute(own_sql(name), values)
    return cursor.fetchall() if cursor.description else []


def install(connection: Connection, *, finished: int, pending: int, running: int, audited: bool = False) -> None:
    """The queue's schema and so many jobs; ``audited`` gives finished ones their audit, which only retention looks at."""
    for _, statement in schema():
        connection.execute(statement)
    # Checked at once at the end: row by row takes twice as long.
    (unique,) = run_own(connection, "constraint", {"name": UNIQUE_KEY})
    connection.execute(f"alter table queue_job drop constraint {UNIQUE_KEY}")
    run_own(connection, "fill_finished", {"jobs": finished})
    connection.execute(f"alter table queue_job add constraint {UNIQUE_KEY} {unique['definition']}")
    if audited:
        run_own(connection, "fill_audit")
    run_own(connection, "fill_running", {"jobs": running})
    run_own(connection, "fill_pending", {"jobs": pending})
    connection.execute("vacuum (analyze) queue_job")
    connection.execute("vacuum (analyze) queue_audit")


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share lies; no interpolation, so it is one that was measured."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
