"""Where a session is made to stand still, on a wire without sockets."""

import asyncio

import pytest

from harness.history.events import SessionClosed
from harness.history.recorder import DeadlinePassed
from harness.wire.framing import message
from tests.unit.wire.conftest import GREETING, Wire
from tests.unit.wire.test_session import (
    CLAIM,
    FLUSH,
    OPEN,
    READY,
    SYNC,
    bind,
    complete,
    error,
    execute,
    extended,
    notice,
    parse,
    query,
    with_claim_known,
)


def to_server(wire: Wire) -> bytes:
    """What reached the server since the log was cleared."""
    return wire.written("server")


def test_a_wanted_query_waits_with_everything_after_it_and_goes_on_in_order(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = wire.proxy.hold_request(lambda request: "claim" in request.changes and request.names("k"))
        await wire.connect()
        wire.log.clear()
        before, held = query("select 1"), query("update jobs set owner = 'me' where id = 17") + query("select 2")
        wire.client.data_received(before + held)
        assert to_server(wire) == before
        await hold.reached(1)
        assert (hold.session, hold.key) == (wire.session, "k")
        assert hold.statement == "update jobs set owner = 'me' where id = 17"
        hold.release()
        assert to_server(wire) == before + held
        wire.client.data_received(held)
        assert to_server(wire) == before + held + held  # it holds once

    asyncio.run(play())


def test_a_statement_is_held_from_its_parse_on_though_only_its_bind_tells(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = wire.proxy.hold_request(lambda request: request.names("k"))
        await wire.connect()
        wire.log.clear()
        other, wanted = extended(CLAIM, b"me", b"18") + SYNC, extended(CLAIM, b"me", b"17") + SYNC
        for at in range(len(other)):
            wire.client.data_received(other[at : at + 1])
        assert to_server(wire) == other
        wire.client.data_received(wanted)
        assert to_server(wire) == other
        assert hold.hit.is_set()
        hold.release()
        assert to_server(wire) == other + wanted

    asyncio.run(play())


@pytest.mark.parametrize("end", [SYNC, FLUSH])
def test_preparing_alone_is_not_held_but_the_bind_is(wire: Wire, end: bytes) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = wire.proxy.hold_request(lambda request: request.bound and "claim" in request.changes)
        await wire.connect()
        wire.log.clear()
        prepare, run = parse(CLAIM, "s") + end, bind(b"me", b"17", name="s") + execute() + SYNC
        wire.client.data_received(prepare)
        assert to_server(wire) == prepare
        wire.client.data_received(run)
        assert to_server(wire) == prepare
        assert hold.hit.is_set()
        hold.release()
        assert to_server(wire) == prepare + run

    asyncio.run(play())


def test_every_holds_again_after_release(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_request(lambda request: request.sql == CLAIM, every=True)
        await wire.connect()
        wire.log.clear()
        once = extended(CLAIM, b"me", b"17") + SYNC
        wire.client.data_received(once + once)
        assert to_server(wire) == b""
        hold.release()
        assert to_server(wire) == once
        assert hold.hit.is_set()
        hold.release()
        assert to_server(wire) == once + once
        hold.disarm()
        wire.client.data_received(once)
        assert to_server(wire) == once * 3
        assert wire.client.direct

    asyncio.run(play())


def test_a_client_that_dies_while_held_is_mirrored_and_its_message_dropped(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_request(lambda _: True)
        await wire.connect()
        wire.log.clear()
        wire.server.pause_writing()
        wire.client.data_received(query("select 1"))
        assert wire.client_transport.reading  # or the end would go unseen
        wire.client.eof_received()
        assert wire.server_transport.ended == "close"
        assert wire.events_of(SessionClosed)[0].by == "client"
        hold.release()
        assert to_server(wire) == b""

    asyncio.run(play())


def test_severed_at_a_hold_nothing_reaches_the_server(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_request(lambda _: True)
        await wire.connect()
        wire.log.clear()
        wire.client.data_received(query("select 1"))
        hold.sever()
        assert (wire.client_transport.ended, wire.server_transport.ended) == ("reset", "reset")
        assert wire.events_of(SessionClosed)[0].by == "harness"
        assert to_server(wire) == b""

    asyncio.run(play())


def begin_and_claim(wire: Wire) -> None:
    wire.client.data_received(query("begin"))
    wire.server.data_received(complete("BEGIN") + OPEN)
    wire.client.data_received(query("update jobs set owner = 1"))
    wire.server.data_received(notice() + complete("UPDATE 1") + OPEN)


def test_after_a_notice_in_an_open_transaction_the_next_message_waits(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_after_notice(lambda seen: seen.change == "claim" and seen.key == "k")
        await wire.connect()
        begin_and_claim(wire)
        assert (hold.hit.is_set(), hold.key, hold.statement) == (True, "k", "update jobs set owner = 1")
        wire.log.clear()
        wire.client.data_received(query("commit"))
        assert to_server(wire) == b""
        assert wire.session.has_held
        hold.release()
        assert to_server(wire) == query("commit")
        assert wire.client.direct

    asyncio.run(play())


def test_an_autocommit_statement_is_missed_and_says_so(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_after_notice(lambda _: True)
        await wire.connect()
        wire.log.clear()
        wire.client.data_received(query("update jobs set owner = 1"))
        wire.server.data_received(notice())
        wire.client.data_received(query("select 1"))  # sent before the answer is complete
        wire.server.data_received(complete("UPDATE 1") + READY)
        assert not hold.hit.is_set()
        assert hold.missed.is_set()
        assert to_server(wire) == query("update jobs set owner = 1") + query("select 1")
        with pytest.raises(DeadlinePassed, match="transaction ended"):
            await hold.reached(5)

    asyncio.run(play())


def test_in_a_pipeline_without_sync_the_next_message_waits_at_once(wire: Wire) -> None:
    async def play() -> None:
        hold = wire.proxy.hold_after_notice(lambda _: True)
        await wire.connect()
        wire.client.data_received(extended(CLAIM, b"me", b"17") + FLUSH)
        wire.server.data_received(notice() + complete("UPDATE 1"))
        assert not hold.hit.is_set()
        wire.log.clear()
        wire.client.data_received(SYNC)
        assert hold.hit.is_set()
        assert to_server(wire) == b""
        hold.release()
        assert to_server(wire) == SYNC

    asyncio.run(play())


def arm_loss(wire: Wire):
    return wire.proxy.lose_reply(lambda seen: seen.change == "claim", lambda request: "claim" in request.changes)


def test_a_lost_reply_withholds_from_the_first_byte_and_hits_when_durable(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = arm_loss(wire)
        await wire.connect()
        wire.log.clear()
        wire.client.data_received(extended(CLAIM, b"me", b"17") + SYNC)
        wire.server.data_received(message(b"1", b"") + message(b"2", b""))
        wire.server.data_received(message(b"D", b"row") + notice() + complete("UPDATE 1"))
        assert not hold.hit.is_set()
        wire.server.data_received(READY)
        assert hold.hit.is_set()
        assert wire.written("client") == b""
        wire.server.data_received(message(b"A", b"later"))
        hold.release()
        row = message(b"D", b"row") + complete("UPDATE 1") + READY + message(b"A", b"later")
        assert wire.written("client") == message(b"1", b"") + message(b"2", b"") + row
        assert wire.server.direct

    asyncio.run(play())


def test_a_candidate_that_changed_nothing_is_delivered_and_the_hold_stays(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = arm_loss(wire)
        await wire.connect()
        for answer in (complete("UPDATE 0"), notice() + error("40001")):
            wire.log.clear()
            wire.client.data_received(query("update jobs set owner = 1"))
            wire.server.data_received(answer + READY)
            assert wire.written("client") == answer.replace(notice(), b"") + READY
            assert not hold.hit.is_set()
        assert hold.armed

    asyncio.run(play())


def test_in_a_transaction_only_the_commit_is_lost(wire: Wire) -> None:
    async def play() -> None:
        hold = arm_loss(wire)
        await wire.connect()
        begin_and_claim(wire)
        assert wire.written("client") == GREETING + complete("BEGIN") + OPEN + complete("UPDATE 1") + OPEN
        wire.log.clear()
        wire.client.data_received(query("select 1"))
        wire.server.data_received(complete("SELECT 1"))
        assert wire.written("client") == b""
        wire.server.data_received(OPEN)
        assert wire.written("client") == complete("SELECT 1") + OPEN
        wire.log.clear()
        wire.client.data_received(query("commit"))
        wire.server.data_received(complete("COMMIT") + READY)
        assert hold.hit.is_set()
        wire.server.eof_received()
        assert wire.written("client") == b""
        assert wire.client_transport.ended is None
        hold.sever("close")
        assert wire.written("client") == b""
        assert wire.client_transport.ended == "close"

    asyncio.run(play())


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_a_transaction_rolled_back_is_not_durable(wire: Wire, end: str) -> None:
    async def play() -> None:
        hold = arm_loss(wire)
        await wire.connect()
        begin_and_claim(wire)
        wire.client.data_received(query(end))
        wire.server.data_received(complete("ROLLBACK") + READY)  # also what COMMIT of a failed transaction says
        assert not hold.hit.is_set()
        assert wire.written("client").endswith(complete("ROLLBACK") + READY)

    asyncio.run(play())


def test_the_end_of_a_held_transaction_by_the_server_is_delivered_on_release(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        hold = arm_loss(wire)
        await wire.connect()
        wire.client.data_received(query("update jobs set owner = 1"))
        wire.server.data_received(notice() + complete("UPDATE 1") + READY)
        wire.server.eof_received()
        assert wire.client_transport.ended is None
        hold.release()
        assert wire.written("client").endswith(complete("UPDATE 1") + READY)
        assert wire.client_transport.ended == "close"

    asyncio.run(play())


def test_a_hold_that_is_not_reached_says_what_it_waited_for(wire: Wire) -> None:
    async def play() -> None:
        with pytest.raises(DeadlinePassed, match=r"0\.01 s for a wanted statement"):
            await wire.proxy.hold_request(lambda _: True).reached(0.01)

    asyncio.run(play())


def test_a_silent_cut_hides_even_the_clients_end_until_healed(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.log.clear()
        wire.proxy.cut()
        wire.client.data_received(query("select 1"))
        wire.client.eof_received()
        assert to_server(wire) == b""
        assert wire.server_transport.ended is None
        wire.proxy.heal()
        assert to_server(wire) == query("select 1")
        assert wire.server_transport.ended == "close"

    asyncio.run(play())


def test_a_severed_client_leaves_the_server_in_the_dark(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.proxy.sever(wire.session, "client")
        wire.client.connection_lost(None)
        assert wire.client_transport.ended == "reset"
        assert wire.server_transport.ended is None
        assert wire.proxy.sessions == [wire.session]
        wire.proxy.sever()
        wire.server.connection_lost(None)
        assert wire.proxy.sessions == []

    asyncio.run(play())


def test_a_delay_delivers_late_and_in_order(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.log.clear()
        wire.proxy.delay(5)
        for number in range(20):
            wire.client.data_received(query(f"select {number}"))
        assert to_server(wire) == b""
        wire.proxy.delay(0)
        wire.client.data_received(query("select 20"))
        expected = b"".join(query(f"select {number}") for number in range(21))
        async with asyncio.timeout(5):
            while to_server(wire) != expected:
                await asyncio.sleep(0.001)
        assert wire.client.direct

    asyncio.run(play())
