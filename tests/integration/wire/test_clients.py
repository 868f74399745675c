"""The proxy is transparent: real drivers do through it what they do without it."""

import asyncio
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg import sql

from harness.history.events import Attempted, Noticed, SessionClosed, SessionOpened, Settled
from tests.integration.wire.conftest import Wired

Story = Callable[[Callable[[Wired], Awaitable[None]]], None]
LARGE = "x" * 10_000_000


def test_psycopg_async_and_what_is_recorded(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        wired.proxy.learning = True
        async with await wired.connect() as connection:
            told: list[str] = []
            connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
            row = await (await connection.execute("select current_setting('qp.worker'), pg_backend_pid()")).fetchone()
            assert row is not None
            assert row[0] == "3"
            await connection.execute("update job set status = %s where id = %s", ("running", 1))
            await connection.execute("do $$ begin raise notice 'mine'; end $$")
            with pytest.raises(psycopg.errors.DivisionByZero):
                await connection.execute("select 1/0")
            assert told == ["mine"]
            assert wired.proxy.sessions[0].pid == row[1]
        opened, noticed, attempted, settled = (
            wired.events_of(kind)[0] for kind in (SessionOpened, Noticed, Attempted, Settled)
        )
        assert (opened.pid, opened.app) == (row[1], "worker")
        assert (noticed.change, noticed.key, noticed.pid) == ("claim", "job-1", row[1])
        assert (attempted.tag, attempted.moved, attempted.jobs) == ("UPDATE 1", 1, ("1",))
        assert settled.session == noticed.session
        assert wired.book.learned() == {"claim": ("update job set status = ? where id = ?",)}
        entry = await wired.play.wait_for(
            lambda entry: isinstance(entry.what, SessionClosed), within_seconds=5, reason="the session to close"
        )
        assert entry.what.by == "client"

    on_the_wire(story)


async def _pipeline(connection: psycopg.AsyncConnection, *statements: str) -> None:
    async with connection.pipeline():
        for statement in statements:
            await connection.execute(statement.encode())


def test_psycopg_prepared_pipelined_and_large(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        wired.book.correct("claim", ["^update job set status"])
        async with await wired.connect(prepare_threshold=0) as connection:
            for number in range(1, 4):
                await connection.execute("update job set status = 'running' where id = %s", (number,))
            async with connection.pipeline():
                cursors = [await connection.execute("select %s::int", (number,)) for number in range(50)]
                await connection.execute("update job set status = 'done' where id = %s", (2,))
            assert [(await cursor.fetchone() or (None,))[0] for cursor in cursors] == list(range(50))
            row = await (await connection.execute("select md5(%s), length(%s)", (LARGE, LARGE))).fetchone()
            assert row is not None
            assert row[1] == len(LARGE)
            large = await (await connection.execute("select repeat('y', 16000000)")).fetchone()
            assert large is not None
            assert len(large[0]) == 16_000_000
            with pytest.raises(psycopg.errors.SyntaxError):
                await _pipeline(
                    connection, "select 1", "no such statement", "update job set status = 'done' where id = 1"
                )
        attempts = wired.events_of(Attempted)
        assert [(each.tag, each.jobs) for each in attempts] == [
            ("UPDATE 1", ("1",)),
            ("UPDATE 1", ("2",)),
            ("UPDATE 1", ()),
            ("UPDATE 1", ("2",)),
        ]

    on_the_wire(story)


def test_psycopg_sync_and_copy_both_ways(on_the_wire: Story) -> None:
    def copy(dsn: str) -> list[tuple[int]]:
        with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("create temp table t (a int, b text)")
            with cursor.copy("copy t from stdin") as copying:
                for number in range(20_000):
                    copying.write_row((number, "some text"))
            with pytest.raises(psycopg.errors.BadCopyFileFormat), cursor.copy("copy t from stdin") as copying:
                copying.write(b"not\ta\trow\tof\tt\n")
            with cursor.copy("copy t to stdout") as copying:
                assert sum(1 for _ in copying.rows()) == 20_000
            cursor.execute("update job set status = 'running' where id = 1")
            return cursor.execute("select count(*)::int from t").fetchall()

    async def story(wired: Wired) -> None:
        wired.book.correct("claim", ["^update job"])
        assert await asyncio.to_thread(copy, wired.via.dsn()) == [(20_000,)]
        assert [each.tag for each in wired.events_of(Attempted)] == ["UPDATE 1"]

    on_the_wire(story)


def test_asyncpg(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        wired.book.correct("complete", ["^update job"])
        connection = await asyncpg.connect(dsn=wired.via.url(), ssl=False)
        try:
            statement = await connection.prepare("update job set status = $1 where id = $2 returning key")
            async with connection.transaction():
                assert await statement.fetchval("done", 2) == "job-2"
            assert await statement.fetchval("done", 200) is None
            async with connection.transaction():
                keys = [row["id"] async for row in connection.cursor("select id from job order by id", prefetch=3)]
            assert keys == list(range(1, 21))
            result = await connection.copy_records_to_table("job", records=[(100, "k", "pending", None)])
            assert result == "COPY 1"
            assert await connection.fetchval("select length($1::text)", LARGE) == len(LARGE)
            with pytest.raises(asyncpg.UniqueViolationError):
                await connection.execute("insert into job (id, key) values ($1, $2)", 1, "k")
        finally:
            await connection.close()
        assert [(each.tag, each.jobs) for each in wired.events_of(Attempted)] == [
            ("", ("2",)),  # fetchval asks for one row, so that the portal is suspended
            ("UPDATE 0", ()),
        ]

    on_the_wire(story)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_prints_nothing_of_ours(on_the_wire: Story) -> None:
    script = "\\set VERBOSITY verbose\nbegin;\nupdate job set status = 'running' where id = 1 returning key;\ncommit;\n"

    async def story(wired: Wired) -> None:
        done = await asyncio.create_subprocess_exec(
            "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **wired.via.env()},
        )  # fmt: skip
        out, complaint = await done.communicate(script.encode())
        assert (done.returncode, out, complaint) == (0, b"job-1\n", b"")
        assert [each.key for each in wired.events_of(Noticed)] == ["job-1"]
        assert len(wired.events_of(Settled)) == 1

    on_the_wire(story)


def test_node_pg(on_the_wire: Story, tmp_path: Path) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "pg@8"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=45)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not install pg within 45 s: {type(error).__name__}")
    program = tmp_path / "worker.js"
    program.write_text(
        """
        const { Client } = require('pg');
        (async () => {
          const client = new Client();
          await client.connect();
          const told = [];
          client.on('notice', notice => told.push(notice.message));
          await client.query('begin');
          const claim = { name: 'claim', text: 'update job set status=$1 where id=$2 returning key', values: ['running', '1'] };
          const first = await client.query(claim);
          await client.query('commit');
          const heard = new Promise(resolve => client.on('notification', resolve));
          await client.query('listen jobs');
          await client.query("notify jobs, 'hello'");
          const news = await heard;
          const large = await client.query('select length($1) as n', ['x'.repeat(10000000)]);
          console.log(JSON.stringify([first.rows[0].key, news.payload, large.rows[0].n, told]));
          await client.end();
        })();
        """
    )

    async def story(wired: Wired) -> None:
        done = await asyncio.create_subprocess_exec(
            "node", str(program),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, **wired.via.env()},
        )  # fmt: skip
        out, complaint = await done.communicate()
        assert (done.returncode, out.strip(), complaint) == (0, b'["job-1","hello",10000000,[]]', b"")
        assert [each.key for each in wired.events_of(Noticed)] == ["job-1"]

    on_the_wire(story)


def test_listen_and_notify(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        async with await wired.connect() as connection:
            await connection.execute("listen jobs")
            await wired.look("select pg_notify('jobs', 'hello')::text")
            async for news in connection.notifies(timeout=5):
                assert news.payload == "hello"
                break
            else:
                pytest.fail("the notification did not arrive within 5 s")

    on_the_wire(story)


def test_a_cancel_request_reaches_the_server(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        async with await wired.connect() as connection:
            sleeping = asyncio.create_task(connection.execute("select pg_sleep(30)"))
            async with asyncio.timeout(5):
                while await wired.look("select count(*) from pg_stat_activity where wait_event = 'PgSleep'") != 1:
                    await asyncio.sleep(0.01)
            await connection.cancel_safe(timeout=5)
            with pytest.raises(psycopg.errors.QueryCanceled):
                await sleeping
            assert await (await connection.execute("select 1")).fetchone() == (1,)

    on_the_wire(story)


def test_a_client_that_insists_on_tls_is_recognised(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        with pytest.raises(psycopg.OperationalError, match="SSL"):
            await psycopg.AsyncConnection.connect(wired.via.dsn(), sslmode="require")
        async with asyncio.timeout(5):
            while not wired.proxy.tls_refused:
                await asyncio.sleep(0.01)
        async with await wired.connect(sslmode="prefer"):
            assert not wired.proxy.tls_refused

    on_the_wire(story)


def test_a_failed_login_is_told_and_opens_no_session(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            await psycopg.AsyncConnection.connect(wired.via.at("no_such_database").dsn())
        assert wired.events_of(SessionOpened) == []

    on_the_wire(story)


async def _log_in_until_refused(dsn: str) -> None:
    """The server takes a moment to read its new rules."""
    async with asyncio.timeout(10):
        while True:
            await (await psycopg.AsyncConnection.connect(dsn)).close()


def test_scram_passes_unread(on_the_wire: Story) -> None:
    """The server's rules of entry are rewritten for one role, and put back."""
    rules = "select pg_read_file(current_setting('hba_file'))"

    async def write(wired: Wired, text: str) -> None:
        async with await psycopg.AsyncConnection.connect(wired.direct.dsn(), autocommit=True) as connection:
            await connection.execute("create temp table rule (n serial, line text)")
            async with connection.cursor() as cursor, cursor.copy("copy rule (line) from stdin") as copying:
                for line in text.splitlines():
                    await copying.write_row((line,))
            file = await (await connection.execute("select current_setting('hba_file')")).fetchone()
            assert file is not None
            order = sql.SQL("copy (select line from rule order by n) to {}").format(sql.Literal(file[0]))
            await connection.execute(order)
            await connection.execute("select pg_reload_conf()")

    async def story(wired: Wired) -> None:
        before = await wired.look(rules)
        async with await psycopg.AsyncConnection.connect(wired.direct.dsn(), autocommit=True) as connection:
            await connection.execute("set password_encryption = 'scram-sha-256'")
            await connection.execute("create role guarded login password 'right'")
        try:
            await write(wired, f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                await _log_in_until_refused(wired.via.as_user("guarded", "wrong").dsn())
            async with await psycopg.AsyncConnection.connect(wired.via.as_user("guarded", "right").dsn()) as guarded:
                assert await (await guarded.execute("select current_user::text")).fetchone() == ("guarded",)
        finally:
            await write(wired, before)
            async with await psycopg.AsyncConnection.connect(wired.direct.dsn(), autocommit=True) as connection:
                await connection.execute("drop role guarded")

    on_the_wire(story)


def test_what_is_no_postgresql_client_is_shown_out(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        for greeting in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", struct.pack("!I", 2**31)):
            reader, writer = await asyncio.open_connection("127.0.0.1", wired.proxy.port)
            writer.write(greeting + b"\0\0\0\0")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()
        assert wired.proxy.tls_refused  # the second spoke TLS without asking

    on_the_wire(story)


def test_when_there_is_no_server_the_client_is_told_at_once(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            wired.proxy._upstream = ("127.0.0.1", nobody.getsockname()[1])
            with pytest.raises(psycopg.OperationalError):
                await wired.connect()
        assert wired.proxy.sessions == []

    on_the_wire(story)
