"""A fresh install equals the sum of the migrations, which run beside live work and may be interrupted anywhere."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from harness.postgres.address import Address
from reference_queue import migrations
from reference_queue.migrations import CURRENT, CannotMigrate, install, installed_version, migrate, steps

VERSION_1 = Path(__file__).with_name("schema_1.sql").read_text()

SHAPE = """
select 'column' as what, table_name || '.' || column_name as name,
    data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') || ' ' || is_identity as form
from information_schema.columns where table_schema = 'public'
union all
select 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) || ' ' || convalidated
from pg_constraint where connamespace = 'public'::regnamespace
union all
select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) || ' ' || indisvalid
from pg_index join pg_class on pg_class.oid = indrelid where relnamespace = 'public'::regnamespace
union all
select 'view', viewname, definition from pg_views where schemaname = 'public'
union all
select 'options', relname, reloptions::text from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
union all
select 'version', max(version)::text, '' from queue_schema
order by 1, 2
"""


@pytest.fixture
def connection(database: Address) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        yield connection


def shape(connection: psycopg.Connection) -> list:
    return connection.execute(SHAPE).fetchall()


def fresh_shape(connection: psycopg.Connection) -> list:
    install(connection)
    found = shape(connection)
    connection.execute("drop schema public cascade")
    connection.execute("create schema public")
    return found


def fill_version_1(connection: psycopg.Connection) -> None:
    connection.execute(VERSION_1)
    connection.execute(
        "insert into queue_job (operation_key, tenant) select 'p' || n, 't' || n % 3 from generate_series(1, 50) n"
    )
    connection.execute(
        "insert into queue_job (operation_key, tenant, state, worker_id, lease_until, attempts)"
        " select 'r' || n, 't' || n % 3, 'running', 'w', now(), 1 from generate_series(1, 2500) n"
    )


def test_a_fresh_install_is_the_sum_of_the_migrations(connection: psycopg.Connection) -> None:
    fresh = fresh_shape(connection)
    fill_version_1(connection)
    assert migrate(connection) == CURRENT
    assert shape(connection) == fresh
    assert connection.execute(
        "select count(*), count(distinct (tenant, permit)) from queue_job where state = 'running'"
    ).fetchone() == (
        2500,
        2500,
    )


def test_interrupted_after_any_step_it_is_simply_run_again(
    connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = fresh_shape(connection)
    fill_version_1(connection)
    original = migrations._step
    for number in range(len(steps(2))):
        left = number + 1

        def interrupted(connection: psycopg.Connection, name: str, pause: object) -> None:
            nonlocal left
            original(connection, name, pause)  # type: ignore[arg-type]
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(migrations, "_step", interrupted)
        if installed_version(connection) == CURRENT:
            break
        with pytest.raises(KeyboardInterrupt):
            migrate(connection)
    monkeypatch.undo()
    assert migrate(connection) == CURRENT
    assert shape(connection) == fresh


def test_a_lock_that_is_not_free_is_tried_again_and_then_told(
    connection: psycopg.Connection, database: Address
) -> None:
    fill_version_1(connection)
    pauses: list[float] = []
    with psycopg.connect(database.dsn()) as other:
        other.execute("lock table queue_job in access share mode")
        with pytest.raises(CannotMigrate, match=r"020_columns\.sql did not get its lock"):
            migrate(connection, lock_timeout_seconds=0.01, pause=pauses.append)
    assert len(pauses) == migrations.LOCK_TRIES - 1
    assert installed_version(connection) == 1
    assert migrate(connection) == CURRENT


def test_a_newer_schema_is_refused(connection: psycopg.Connection) -> None:
    assert installed_version(connection) is None
    assert migrate(connection) == CURRENT
    connection.execute("insert into queue_schema (version) values (99)")
    with pytest.raises(CannotMigrate, match="version 99, newer than"):
        migrate(connection)
