"""The law of the wire: out comes what went in, minus our notices, plus our start-up parameter, however it is cut up."""

import asyncio
import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.history.events import Noticed
from harness.wire.framing import BACK, Scanner, message, with_parameter
from tests.unit.wire.conftest import GREETING, STARTUP, Wire

NOTICE = message(
    b"N",
    b"SNOTICE\0VNOTICE\0C00000\0Mqueueproof!"
    + json.dumps({"seq": 1, "xid": 2, "change": "claim", "key": "k", "job": "17", "worker": 3}).encode()
    + b"\0Fx\0\0",
)
NOT_OURS = message(b"N", b"SNOTICE\0C00000\0Mhello queueproof!{}\0\0")

names = st.sampled_from([b"", b"s1", b"s2"])
front = st.one_of(
    st.builds(lambda sql: message(b"Q", sql + b"\0"), st.sampled_from([b"select 1", b"begin", b"commit", b""])),
    st.builds(
        lambda name, sql: message(b"P", name + b"\0" + sql + b"\0\0\0"), names, st.sampled_from([b"select $1", b"x"])
    ),
    st.builds(lambda portal, name: message(b"B", portal + b"\0" + name + b"\0\0\0\0\0\0\0"), names, names),
    st.builds(lambda portal: message(b"E", portal + b"\0\0\0\0\0"), names),
    st.builds(lambda name: message(b"C", b"S" + name + b"\0"), names),
    st.sampled_from([message(b"S", b""), message(b"H", b""), message(b"c", b""), message(b"f", b"no\0")]),
    st.builds(message, st.sampled_from([b"d", b"D", b"p", b"Q", b"P", b"B", b"E", b"C", b"F"]), st.binary(max_size=40)),
)
back = st.one_of(
    st.just(NOTICE),
    st.just(NOT_OURS),
    st.builds(lambda status: message(b"Z", status), st.sampled_from([b"I", b"T", b"E"])),
    st.builds(lambda tag: message(b"C", tag + b"\0"), st.sampled_from([b"UPDATE 1", b"COMMIT", b"ROLLBACK", b"\xff"])),
    st.just(message(b"E", b"SERROR\0C40001\0Mx\0\0")),
    st.sampled_from([message(kind, b"") for kind in (b"I", b"s", b"1", b"2", b"n", b"G", b"W", b"K")]),
    st.builds(message, st.sampled_from([b"D", b"T", b"A", b"S", b"d", b"N", b"E"]), st.binary(max_size=40)),
)


def pieces(data: bytes, cuts: list[int] | None) -> list[bytes]:
    """The stream in pieces: byte by byte, or cut at these places (modulo its length)."""
    if cuts is None:
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


CUTS = st.one_of(st.none(), st.lists(st.integers(0, 10_000), max_size=12))


def arm(wire: Wire, mode: str) -> None:
    """Arm holds that want nothing: every byte goes the careful way and must still come out."""
    if mode == "careful":
        wire.proxy.hold_request(lambda _: False)
        wire.proxy.hold_after_notice(lambda _: False)
        wire.proxy.lose_reply(lambda _: False, lambda _: True)


@pytest.mark.parametrize("mode", ["direct", "careful", "cut"])
@given(sent=st.lists(front, max_size=12), answered=st.lists(back, max_size=12), front_cuts=CUTS, back_cuts=CUTS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_goes_in_comes_out(
    mode: str, sent: list[bytes], answered: list[bytes], front_cuts: list[int] | None, back_cuts: list[int] | None
) -> None:
    async def play() -> None:
        wire = Wire()
        arm(wire, mode)
        await wire.connect()
        if mode == "cut":
            wire.proxy.cut()
        asked = pieces(b"".join(sent), front_cuts)
        replies = pieces(b"".join(answered), back_cuts)
        while asked or replies:
            if asked:
                wire.client.data_received(asked.pop(0))
            if replies:
                wire.server.data_received(replies.pop(0))
        if mode == "cut":
            assert wire.written("client") == GREETING
            wire.proxy.heal()
        if mode == "careful":
            wire.client.data_received(message(b"S", b""))  # a Parse waits for what follows it
            sent.append(message(b"S", b""))
            wire.server.data_received(message(b"Z", b"I"))  # a reply that may be lost waits for ReadyForQuery
            answered.append(message(b"Z", b"I"))
        assert wire.written("server") == with_parameter(STARTUP, "qp.worker", "3") + b"".join(sent)
        assert wire.written("client") == GREETING + b"".join(each for each in answered if each != NOTICE)
        assert len(wire.events_of(Noticed)) == answered.count(NOTICE)

    asyncio.run(play())


@given(cuts=CUTS)
def test_the_start_is_found_however_it_is_split(cuts: list[int] | None) -> None:
    ssl = b"\0\0\0\x08" + (80877103).to_bytes(4, "big")
    query = message(b"Q", b"select 1\0")

    async def play() -> None:
        wire = Wire()
        first, *rest = pieces(ssl + STARTUP + query, cuts)
        await wire.connect(startup=first, greeting=b"") if not rest else None
        if rest:
            await _connect_in_pieces(wire, [first, *rest])
        assert wire.written("client") == b"N"
        assert wire.written("server") == with_parameter(STARTUP, "qp.worker", "3") + query

    asyncio.run(play())


async def _connect_in_pieces(wire: Wire, stream: list[bytes]) -> None:
    from harness.wire.session import Session
    from tests.unit.wire.conftest import Transport

    wire.client = Session(wire.proxy).client_side
    wire.client.connection_made(Transport("client", wire.log))
    for piece in stream:
        wire.client.data_received(piece)
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)


@given(st.binary(max_size=300), CUTS)
def test_bytes_that_are_no_protocol_pass_unchanged(junk: bytes, cuts: list[int] | None) -> None:
    scanner = Scanner(BACK)
    end = message(b"D", b"") + b"\xff\0\0\0\0 and then anything"
    out = b"".join(scanner.feed(piece)[0] for piece in pieces(end + junk, cuts))
    assert scanner.lost
    assert out == end + junk


def test_a_large_message_comes_through_whole() -> None:
    async def play() -> None:
        wire = Wire()
        await wire.connect()
        large = message(b"Q", b"select '" + b"x" * 16_000_000 + b"'\0")
        for at in range(0, len(large), 65_536):
            wire.client.data_received(large[at : at + 65_536])
        assert wire.written("server").endswith(large)

    asyncio.run(play())
