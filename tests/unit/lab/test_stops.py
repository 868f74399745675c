"""When the gate is shut before a wanted statement, on a wire without sockets and before a server that is not there."""

import asyncio
from typing import Any, cast

from harness.contracts.point import Point
from harness.lab.stops import GateStop, Surroundings
from harness.postgres.gates import Parked
from harness.postgres.truth import SNAPSHOT_GATE
from harness.wire.holds import RequestView
from tests.unit.wire.conftest import Wire
from tests.unit.wire.test_session import CLAIM, FLUSH, READY, SYNC, complete, extended, query, with_claim_known

RESCUE = "update jobs set state = 'waiting' where lease_until < now()"


class Gates:
    """Says when it was shut."""

    def __init__(self) -> None:
        self.is_shut = False

    async def shut(self, gate: int, worker: int, *, place: int = 0) -> None:
        self.is_shut = True


def claims(request: RequestView) -> bool:
    return "claim" in request.changes


def armed(wire: Wire) -> tuple[GateStop, Gates]:
    with_claim_known(wire)
    gates, absent = Gates(), cast("Any", None)
    around = Surroundings(3, wire.proxy, cast("Any", gates), absent, absent, absent, lambda key: True)
    return GateStop(Point.SNAPSHOT, around, SNAPSHOT_GATE, claims), gates


def test_what_goes_before_a_claim_in_a_pipeline_passes_the_gate_before_that_is_shut() -> None:
    async def play() -> None:
        wire = Wire()
        stop, gates = armed(wire)
        await wire.connect()
        wire.log.clear()
        before, held = extended(RESCUE), extended(CLAIM, b"me", b"17") + SYNC
        wire.client.data_received(before + held)
        assert not await stop.shut_when_sent()
        assert not await stop.shut_when_sent()
        # It is asked for the answer, once: unasked it would keep that until the Sync, which is held.
        assert wire.written("server") == before + FLUSH
        assert not gates.is_shut
        wire.server.data_received(complete("UPDATE 0"))
        assert await stop.shut_when_sent()
        assert gates.is_shut
        assert wire.written("server") == before + FLUSH + held

    asyncio.run(play())


def test_nothing_is_asked_of_a_server_that_will_answer_by_itself() -> None:
    async def play() -> None:
        wire = Wire()
        stop, gates = armed(wire)
        await wire.connect()
        wire.log.clear()
        before, held = query("update jobs set seen = 1"), query("update jobs set owner = 'me' where id = 17")
        wire.client.data_received(before + held)
        assert not await stop.shut_when_sent()
        assert wire.written("server") == before
        wire.server.data_received(complete("UPDATE 0") + READY)
        assert await stop.shut_when_sent()
        assert gates.is_shut
        assert wire.written("server") == before + held

    asyncio.run(play())


def test_one_whose_client_died_before_the_gate_was_shut_leaves_it_open_for_the_next() -> None:
    async def play() -> None:
        wire = Wire()
        stop, gates = armed(wire)
        await wire.connect()
        claim = query("update jobs set owner = 'me' where id = 17")
        wire.client.data_received(claim)
        wire.client.connection_lost(None)
        assert not await stop.shut_when_sent()
        assert not gates.is_shut
        await wire.connect()
        wire.log.clear()
        wire.client.data_received(claim)
        assert wire.written("server") == b""
        assert await stop.shut_when_sent()
        assert gates.is_shut
        assert wire.written("server") == claim

    asyncio.run(play())


def test_statements_that_begin_alike_for_longer_than_the_server_shows_are_told_apart() -> None:
    async def play() -> None:
        wire = Wire()
        stop, _ = armed(wire)
        remark = "/* " + "é" * 600 + " */ "
        claim, rescue = remark + "update jobs set owner = 'me' where id = 17", remark + RESCUE
        parked = Parked(3, 1, 77, "active", "Lock", "advisory", None, claim.encode()[:1023].decode())
        await wire.connect()
        wire.client.data_received(query(claim))
        assert stop.statement_of(parked) == ""  # it is held
        assert await stop.shut_when_sent()
        assert stop.statement_of(parked) == "update jobs set owner = ? where id = ?"
        wire.server.data_received(complete("UPDATE 1") + READY)
        wire.client.data_received(query(rescue))
        assert stop.statement_of(parked) == ""

    asyncio.run(play())
