"""Holds and cuts against a real PostgreSQL: the server's own view proves where a session stands."""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from harness.history.events import Noticed, SessionClosed
from harness.wire.bucket import BURST_SECONDS
from tests.integration.wire.conftest import Wired

Story = Callable[[Callable[[Wired], Awaitable[None]]], None]
CLAIM = "update job set status = 'running' where id = %s"


async def shows(wired: Wired, sql: str, expected: object) -> None:
    """Wait until the server answers so."""
    async with asyncio.timeout(10):
        while await wired.look(sql) != expected:
            await asyncio.sleep(0.01)


def backend(pid: int) -> str:
    return f"select state || ' ' || coalesce(wait_event, '') from pg_stat_activity where pid = {pid}"


@pytest.mark.parametrize("prepare_threshold", [None, 0])
def test_a_held_claim_has_not_reached_the_server(on_the_wire: Story, prepare_threshold: int | None) -> None:
    async def story(wired: Wired) -> None:
        wired.book.correct("claim", ["set status = 'running'", r"set status = \?"])
        hold = wired.proxy.hold_request(lambda request: "claim" in request.changes and request.names("job-2"))
        async with await wired.connect(prepare_threshold=prepare_threshold) as connection:
            await connection.execute(CLAIM, (1,))
            claiming = asyncio.create_task(connection.execute(CLAIM, (2,)))
            await hold.reached(5)
            assert hold.key == "job-2"
            assert await wired.look(backend(hold.session.pid)) == "idle ClientRead"
            assert await wired.look("select status from job where id = 2") == "pending"
            hold.release()
            await claiming
        assert await wired.look("select status from job where id = 2") == "running"

    on_the_wire(story)


def test_claimed_in_a_transaction_and_killed_it_rolls_back(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        hold = wired.proxy.hold_after_notice(lambda seen: seen.change == "claim" and seen.key == "job-1")
        connection = await wired.connect(autocommit=False)
        await connection.execute(CLAIM, (1,))
        await hold.reached(5)
        committing = asyncio.create_task(connection.commit())
        async with asyncio.timeout(5):
            while not hold.session.has_held:
                await asyncio.sleep(0.001)
        assert await wired.look(backend(hold.session.pid)) == "idle in transaction ClientRead"
        assert await wired.look("select xmax::text <> '0' from job where id = 1")
        committing.cancel()
        connection.pgconn.finish()  # what a SIGKILL does to its socket
        await shows(wired, f"select count(*) from pg_stat_activity where pid = {hold.session.pid}", 0)
        assert await wired.look("select status from job where id = 1") == "pending"
        assert wired.events_of(SessionClosed)[0].by == "client"

    on_the_wire(story)


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("sever", [True, False])
def test_a_durable_claim_whose_reply_is_lost(on_the_wire: Story, autocommit: bool, sever: bool) -> None:
    async def story(wired: Wired) -> None:
        wired.book.correct("claim", ["set status = 'running'", r"set status = \?"])
        hold = wired.proxy.lose_reply(lambda seen: seen.change == "claim", lambda request: "claim" in request.changes)
        connection = await wired.connect(autocommit=autocommit)

        async def claim() -> None:
            await connection.execute(CLAIM, (1,))
            if not autocommit:
                await connection.commit()

        await connection.execute("select 1")
        claiming = asyncio.create_task(claim())
        await hold.reached(5)
        assert await wired.look("select status from job where id = 1") == "running"
        assert not claiming.done()
        if sever:
            hold.sever()
            with pytest.raises(psycopg.OperationalError):
                await claiming
            await shows(wired, f"select count(*) from pg_stat_activity where pid = {hold.session.pid}", 0)
            assert wired.events_of(SessionClosed)[0].by == "harness"
        else:
            hold.release()
            await claiming
            assert await (await connection.execute("select 2")).fetchone() == (2,)
        await connection.close()

    on_the_wire(story)


def test_a_cut_swallows_both_directions_and_heals_in_order(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        connection = await wired.connect()
        wired.proxy.cut()
        claiming = asyncio.create_task(connection.execute(CLAIM, (1,)))
        newcomer = asyncio.create_task(wired.connect())
        done, _ = await asyncio.wait([claiming, newcomer], timeout=0.3)
        assert not done
        assert wired.events_of(Noticed) == []
        wired.proxy.heal()
        await claiming
        other = await newcomer
        assert await (await other.execute("select status from job where id = 1")).fetchone() == ("running",)
        await connection.close()
        await other.close()

    on_the_wire(story)


def test_under_a_cut_the_server_never_learns_of_the_clients_death(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        connection = await wired.connect(autocommit=False)
        await connection.execute(CLAIM, (1,))
        session = wired.proxy.sessions[0]
        wired.proxy.cut()
        connection.pgconn.finish()
        async with asyncio.timeout(5):
            while not wired.events_of(SessionClosed):
                await asyncio.sleep(0.001)
        assert await wired.look(backend(session.pid)) == "idle in transaction ClientRead"
        wired.proxy.heal()
        await shows(wired, f"select count(*) from pg_stat_activity where pid = {session.pid}", 0)

    on_the_wire(story)


def test_a_refusing_port_refuses_and_accepts_again(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        port = wired.proxy.port
        async with await wired.connect() as connection:
            await wired.proxy.refuse()
            with pytest.raises(psycopg.OperationalError, match="refused"):
                await wired.connect()
            assert await (await connection.execute("select 1")).fetchone() == (1,)
            await wired.proxy.accept()
            assert wired.proxy.port == port
            async with await wired.connect() as other:
                assert await (await other.execute("select 1")).fetchone() == (1,)

    on_the_wire(story)


def test_a_killed_backend_ends_the_session_by_the_server(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        connection = await wired.connect()
        await wired.look("select pg_terminate_backend(%s)", wired.proxy.sessions[0].pid)
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("select 1")
        assert wired.events_of(SessionClosed)[0].by == "server"
        await connection.close()

    on_the_wire(story)


def test_a_delay_is_felt_in_both_directions(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        async with await wired.connect() as connection:
            wired.proxy.delay(50)
            loop = asyncio.get_running_loop()
            before = loop.time()
            await connection.execute("select 1")
            assert loop.time() - before >= 0.1
            wired.proxy.delay(0)

    on_the_wire(story)


def test_a_narrow_line_is_felt_in_both_directions_and_heals_at_once(on_the_wire: Story) -> None:
    async def story(wired: Wired) -> None:
        async with await wired.connect() as connection:
            loop = asyncio.get_running_loop()
            size, rate = 30_000, 60_000
            least = (size - rate * BURST_SECONDS) / rate
            for sql, value in (("select length(%s::text)", "x" * size), ("select repeat('x', %s)", size)):
                wired.proxy.throttle(rate)
                before = loop.time()
                await connection.execute(sql, (value,))
                assert loop.time() - before >= least, sql
                wired.proxy.throttle(100)
                asking = asyncio.create_task(connection.execute(sql, (value,)))
                done, _ = await asyncio.wait([asking], timeout=0.2)
                assert not done, sql
                wired.proxy.throttle(None)
                async with asyncio.timeout(5):  # at that rate it would take five minutes
                    await asking

    on_the_wire(story)
