"""The command line as a user meets it: a process of its own, in an empty folder, with every law it must always keep."""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from harness.postgres.address import Address
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import parse_server
from harness.postgres.owned import OwnedCluster
from harness.processes.watchdog import Watchdog
from harness.run.starters import write_starter

COMMAND = str(Path(sys.executable).with_name("queueproof"))
EXITS = {0, 1, 2, 3, 4, 130}


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said where."""

    code: int
    out: str
    err: str


def judged(code: int, out: bytes, err: bytes) -> Said:
    """What every end of every command must keep: a known exit code, and no traceback."""
    said = Said(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
    assert code in EXITS, said
    for text in (said.out, said.err):
        assert "Traceback" not in text, said
        assert "Exception ignored" not in text, said
        assert "\x1b" not in text, said
        assert "\x00" not in text, said
    if code in {2, 3}:
        assert (said.err + said.out).strip(), "it must say why"
    return said


class CommandLine:
    """Starts ``queueproof`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("QUEUEPROOF_", "PG"))}

    def begin(self, *arguments: str | Path) -> "subprocess.Popen[bytes]":
        """Start it and let it run."""
        return subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *arguments: str | Path, within_seconds: float = 60) -> Said:
        """Run it to its end."""
        process = self.begin(*arguments)
        try:
            out, err = process.communicate(timeout=within_seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=20)
            raise AssertionError(f"still running after {within_seconds} s: {err.decode()}") from None
        return judged(process.returncode, out, err)


@pytest.fixture
def queueproof(tmp_path: Path) -> CommandLine:
    """The command, in a folder of the test's own."""
    return CommandLine(tmp_path)


@pytest.fixture
def dsn(cluster: Cluster) -> str:
    """A server that somebody else runs, with a user who may do everything."""
    return cluster.address.url()


MakeSubject = Callable[..., Path]


@pytest.fixture
def make_subject(tmp_path: Path) -> MakeSubject:
    """Write a starter and change it: a file's whole text, or one passage of it for another."""

    def make(
        kind: str = "shell",
        edits: Sequence[tuple[str, str, str]] = (),
        files: dict[str, bytes] | None = None,
    ) -> Path:
        folder = tmp_path / "my-queue"
        shutil.rmtree(folder, ignore_errors=True)
        write_starter(kind, folder)
        for file, old, new in edits:
            text = (folder / file).read_text(encoding="utf-8")
            assert text.count(old) >= 1, (file, old)
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        for file, content in (files or {}).items():
            (folder / file).write_bytes(content)
        return folder

    return make


PASSWORD = "s3/cr@t'&=% x"
"""Every sign that a connection string, a URL or SQL could stumble over."""


@pytest.fixture(scope="session")
def host(watchdog: Watchdog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Somebody's server, with users of little rights; the user ``poor`` has a password and may not create databases."""
    with asyncio.Runner() as runner:
        opened = open_cluster(parse_server("embedded"), watchdog, tmp_path_factory.mktemp("host"))
        cluster = runner.run(opened.__aenter__())
        assert isinstance(cluster, OwnedCluster)
        rules = cluster.server.data / "pg_hba.conf"
        rules.write_text(f"host all poor,maker 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(cluster.address.dsn(), autocommit=True) as connection:
            for name, rights in (("poor", ""), ("maker", "createdb createrole"), ("guest", "")):
                connection.execute(
                    sql.SQL("create role {} login {} password {}").format(
                        sql.Identifier(name), sql.SQL(rights), sql.Literal(PASSWORD)
                    )
                )
        runner.run(cluster.reload({}))
        yield cluster.address
        runner.run(opened.__aexit__(None, None, None))


@pytest.fixture
def own(host: Address) -> Iterator[Address]:
    """A fresh database of the user ``poor``, which is all that it has."""
    name = f"own_{secrets.token_hex(4)}"
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} owner poor").format(sql.Identifier(name)))
    yield host.at(name).as_user("poor", PASSWORD)
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def things_in(address: Address) -> list[str]:
    """Whatever stands in a database besides what every database has, triggers included."""
    with psycopg.connect(address.dsn()) as connection:
        rows = connection.execute(
            "select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_' and nspname not in ('public', 'information_schema')"
            " union all select 'relation ' || oid::regclass from pg_class"
            " where relnamespace::regnamespace::text !~ '^(pg_|information_schema)'"
            " union all select 'function ' || oid::regprocedure from pg_proc"
            " where pronamespace::regnamespace::text !~ '^(pg_|information_schema)'"
            " union all select 'trigger ' || tgname from pg_trigger where not tgisinternal order by 1"
        ).fetchall()
    return [str(row[0]) for row in rows]


def left_on(host: Address) -> list[str]:
    """Databases and roles with our name on a server."""
    with psycopg.connect(host.dsn()) as connection:
        rows = connection.execute(
            "select datname::text from pg_database where datname ~ '^queueproof_[0-9a-f]{8}_' union all"
            " select rolname::text from pg_roles where rolname ~ '^queueproof_worker_[0-9a-f]{8}'"
        ).fetchall()
    return [str(row[0]) for row in rows]
