"""The worker's connection: values and refusals as psycopg's, a lost answer never taken for one, behind a pooler too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from reference_queue.prepared import ConnectionLost, PreparedConnection
from reference_queue.sessions import Sessions, Unknown, prepare


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[PreparedConnection]:
    psyco = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    prepare(psyco)
    connection = PreparedConnection(psyco)
    try:
        yield connection
    finally:
        await connection.close()


def play(story) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())


async def until_lost(connection: PreparedConnection) -> None:
    async with asyncio.timeout(10):
        while not connection.lost:
            await asyncio.sleep(0.01)


def test_values_go_and_come_as_psycopg_takes_them(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            text = "select %(word)s::text as word, %(number)s as number, %(word)s::text || '%%' as more, %(list)s::text[] as list"
            for word in ('it\'s "so" %(x)s', None, "ключ"):
                (row,) = await connection.run(text, {"word": word, "number": 7, "list": ["a", None], "unused": 1})
                assert row == {"word": word, "number": 7, "more": word and f"{word}%", "list": ["a", None]}
            assert await connection.run("create temporary table t (a int)", {}) == []
            assert await connection.run("delete from t", {}) == []
            with pytest.raises(psycopg.ProgrammingError, match=r"%\(gone\)s"):
                await connection.run("select %(gone)s", {})

    play(story)


def test_what_is_larger_than_the_socket_arrives_whole(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            large = "x" * 20_000_000
            (row,) = await connection.run("select %(large)s::text as large", {"large": large})
            assert row["large"] == large

    play(story)


def test_a_refusal_leaves_the_connection_usable_and_an_end_does_not(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            for _ in range(2):
                with pytest.raises(psycopg.errors.DivisionByZero) as refused:
                    await connection.run("select 1 / %(by)s", {"by": 0})
                assert refused.value.diag.message_primary == "division by zero"
            assert await connection.run("select 1 as one", {}) == [{"one": 1}]
            with pytest.raises(ConnectionLost):
                await connection.run("select pg_terminate_backend(pg_backend_pid())", {})
            assert connection.lost
            with pytest.raises(ConnectionLost):
                await connection.run("select 1 as one", {})

    play(story)


def test_an_end_while_idle_is_noticed_without_a_statement(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            (row,) = await connection.run("select pg_backend_pid() as pid", {})
            queue.run(f"select pg_terminate_backend({row['pid']})")
            await until_lost(connection)

    play(story)


def test_an_answer_without_the_servers_being_ready_is_none() -> None:
    """A server of our own that says that the command is complete, and goes before it says that it is ready: it may not have committed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        ready = b"Z\0\0\0\5I"
        writer.write(b"R\0\0\0\x08\0\0\0\0" + ready)
        await reader.readuntil(b"S\0\0\0\4")  # the Sync after Parse
        writer.write(b"1\0\0\0\4" + ready)
        await reader.readuntil(b"S\0\0\0\4")  # and the one after Execute
        writer.write(b"2\0\0\0\4" + b"n\0\0\0\4" + b"C\0\0\0\rUPDATE 1\0")
        await writer.drain()
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        dsn = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable gssencmode=disable"
        async with server, connected(dsn) as connection:
            with pytest.raises(ConnectionLost):
                await connection.run("update queue_job set state = 'done'", {})

    play(story)


def test_a_farewell_is_enough_also_when_the_socket_stays_open() -> None:
    """What a pooler in between may do; and some event loops tell nobody of a socket that was reset."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        writer.write(b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\5I")
        await reader.readuntil(b"S\0\0\0\4")
        farewell = b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0"
        writer.write(b"E" + (len(farewell) + 4).to_bytes(4) + farewell)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        over.set()

    over = asyncio.Event()

    async def story() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        dsn = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable gssencmode=disable"
        async with server, connected(dsn) as connection:
            with pytest.raises(ConnectionLost, match="AdminShutdown"):
                await connection.run("select 1", {})
            assert connection.lost
            await connection.close()
            await over.wait()

    play(story)


def test_statements_that_a_pooler_forgot_are_sent_whole(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            assert await connection.run("select %(a)s::int as a", {"a": 1}) == [{"a": 1}]
            await connection.run("deallocate all", {})
            for a in (2, 3):
                assert await connection.run("select %(a)s::int as a", {"a": a}) == [{"a": a}]

    play(story)


def test_what_another_session_has_prepared_is_never_run_in_place_of_ours(queue) -> None:
    """Sessions that a pooler gives each other's server connections see all the names that were given there."""

    async def names(*texts: str) -> list[str]:
        async with connected(queue.dsn) as connection:
            for text in texts:
                await connection.run(text, {"a": 1})
            told = await connection.run("select name from pg_prepared_statements where statement ~ 'as [ab]$'", {})
            return sorted(row["name"] for row in told)

    async def story() -> None:
        as_a, as_b = "select %(a)s::int as a", "select %(a)s::int as b"
        first, other = await names(as_a), await names(as_b)
        assert len(first) == len(other) == 1
        assert first != other
        assert await names(as_b, as_a) == sorted(first + other)

    play(story)


def test_a_cancelled_statement_leaves_no_reader_behind(queue) -> None:
    async def story() -> None:
        async with connected(queue.dsn) as connection:
            sleeping = asyncio.create_task(connection.run("select pg_sleep(20)", {}))
            await asyncio.sleep(0.05)
            sleeping.cancel()
            await asyncio.wait([sleeping])
            await connection.close()
            await connection.close()
            assert not asyncio.get_running_loop()._selector.get_map().keys() - {
                asyncio.get_running_loop()._ssock.fileno()
            }

    play(story)


def test_a_changed_column_is_no_reason_to_fail_for_ever(queue) -> None:
    async def story() -> None:
        queue.run("create table changed (a int); insert into changed values (1)")
        async with connected(queue.dsn) as connection:
            for change, a in (("alter a type bigint", 1), ("add b int default 2", 1), ("alter a type text", "1")):
                await connection.run("select * from changed", {})
                queue.run(f"alter table changed {change}")
                for _ in range(2):
                    (row,) = await connection.run("select * from changed", {})
                    assert row["a"] == a, change
            told = await connection.run("select count(*) as n from pg_prepared_statements", {})
            assert told[0]["n"] > 1, "it must go on preparing"

    play(story)


def test_what_python_has_no_value_for_is_neither_refused_nor_fatal(queue) -> None:
    async def story() -> None:
        sessions = Sessions(queue.dsn, "t", 1, deadline_seconds=5)
        await sessions.run("set datestyle = 'SQL'", {})
        moments = "select 'infinity'::timestamptz as late, '-infinity'::timestamptz as early, '4713-01-01 BC'::timestamptz as bc"
        (row,) = await sessions.run(moments, {})
        assert row["late"] == "infinity"
        with pytest.raises(Unknown, match="ValueError"):
            await sessions.run("select ('[' || repeat('9', 5000) || ']')::jsonb as many_digits", {})
        assert await sessions.run("select 1 as one", {}) == [{"one": 1}]
        await sessions.close()

    play(story)


def test_copy_ends_the_connection_and_not_the_worker(queue) -> None:
    async def story() -> None:
        for copy in ("copy (select 1) to stdout", "copy queue_job from stdin"):
            async with connected(queue.dsn) as connection:
                with pytest.raises(ConnectionLost, match="COPY"):
                    await connection.run(copy, {})
                assert connection.lost

    play(story)


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_the_worker_speaks_utf8_whatever_its_environment_says(queue, encoding, monkeypatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)

    async def story() -> None:
        sessions = Sessions(queue.dsn, "t", 1, deadline_seconds=5)
        (row,) = await sessions.run("select %(word)s::text as word, 'é' as e -- ключ", {"word": "ключ"})
        assert row == {"word": "ключ", "e": "é"}
        await sessions.close()

    play(story)
