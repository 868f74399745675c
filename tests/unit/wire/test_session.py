"""What a session says of the statements it carries, and in which order."""

import asyncio
import json
import struct

from harness.history.events import Attempted, Noticed, SessionClosed, SessionOpened, Settled
from harness.wire.framing import message
from tests.unit.wire.conftest import GREETING, Wire

READY, OPEN, FAILED = (message(b"Z", status) for status in (b"I", b"T", b"E"))
SYNC, FLUSH = message(b"S", b""), message(b"H", b"")
CLAIM = "update jobs set owner = $1 where id = $2"


def notice(change: str = "claim", seq: int = 1, key: str = "k") -> bytes:
    said = json.dumps({"seq": seq, "xid": 5, "change": change, "key": key, "job": "17", "worker": 3})
    return message(b"N", b"SNOTICE\0C00000\0Mqueueproof!" + said.encode() + b"\0\0")


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def complete(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


def error(code: str, severity: str = "ERROR") -> bytes:
    return message(b"E", f"S{severity}\0V{severity}\0C{code}\0Mx\0\0".encode())


def parse(sql: str, name: str = "") -> bytes:
    return message(b"P", f"{name}\0{sql}\0\0\0".encode())


def bind(*values: bytes, name: str = "", portal: str = "") -> bytes:
    body = f"{portal}\0{name}\0".encode() + struct.pack("!HH", 0, len(values))
    return message(b"B", body + b"".join(struct.pack("!i", len(each)) + each for each in values) + b"\0\0")


def execute(portal: str = "") -> bytes:
    return message(b"E", portal.encode() + b"\0\0\0\0\0")


def extended(sql: str, *values: bytes) -> bytes:
    return parse(sql) + bind(*values) + message(b"D", b"P\0") + execute()


def with_claim_known(wire: Wire) -> None:
    wire.book.correct("claim", ["update jobs set owner"])
    wire.known.add("k", "17")


def test_a_session_opens_with_its_backend_and_closes_by_whoever_ended_it(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        assert wire.events_of(SessionOpened) == [SessionOpened(wire.session.id, 3, 77, "app")]
        assert [type(what) if who == "event" else who for who, what in wire.log][-2:] == [SessionOpened, "client"]
        wire.server.eof_received()
        assert wire.client_transport.ended == "close"
        wire.client.connection_lost(None)
        assert wire.events_of(SessionClosed) == [SessionClosed(wire.session.id, 3, 77, "server")]

    asyncio.run(play())


def test_a_client_that_says_goodbye_closed_it_even_if_the_server_hangs_up_first(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.client.data_received(message(b"X", b""))
        wire.server.eof_received()
        assert wire.events_of(SessionClosed)[0].by == "client"

    asyncio.run(play())


def test_a_notice_is_recorded_before_its_chunk_goes_on_and_settled_before_ready(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.client.data_received(query("update jobs set owner = 1"))
        wire.log.clear()
        wire.server.data_received(message(b"T", b"rows") + notice() + complete("UPDATE 1") + READY)
        kinds = [type(what) if who == "event" else (who, what) for who, what in wire.log]
        assert kinds == [Noticed, Settled, ("client", message(b"T", b"rows") + complete("UPDATE 1") + READY)]
        noticed = wire.events_of(Noticed)[0]
        assert (noticed.seq, noticed.xid, noticed.key, noticed.statement) == (1, 5, "k", "update jobs set owner = ?")

    asyncio.run(play())


def test_only_an_idle_session_with_something_to_settle_settles(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.client.data_received(query("begin"))
        wire.server.data_received(complete("BEGIN") + OPEN)
        wire.client.data_received(query("update jobs set owner = 1"))
        wire.server.data_received(notice() + complete("UPDATE 1") + OPEN)
        assert not wire.events_of(Settled)
        wire.client.data_received(query("commit"))
        wire.server.data_received(complete("COMMIT") + READY)
        assert len(wire.events_of(Settled)) == 1
        wire.client.data_received(query("select 1"))
        wire.server.data_received(complete("SELECT 1") + READY)
        assert len(wire.events_of(Settled)) == 1

    asyncio.run(play())


def test_learning_ties_a_statement_to_its_change_and_nothing_else(wire: Wire) -> None:
    async def play() -> None:
        wire.proxy.learning = True
        await wire.connect()
        wire.client.data_received(extended(CLAIM, b"me", b"17") + SYNC + query("select 1"))
        wire.server.data_received(notice() + complete("UPDATE 1") + READY + complete("SELECT 1") + READY)
        assert wire.book.learned() == {"claim": ("update jobs set owner = ? where id = ?",)}
        (attempted,) = wire.events_of(Attempted)
        assert (attempted.moved, attempted.tag, attempted.changes) == (1, "UPDATE 1", ("claim",))

    asyncio.run(play())


def test_a_refused_statement_is_an_attempt_that_names_its_job(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(extended(CLAIM, b"me", b"17") + SYNC)
        wire.server.data_received(complete("UPDATE 0") + READY)
        (attempted,) = wire.events_of(Attempted)
        assert (attempted.moved, attempted.tag, attempted.sqlstate, attempted.jobs) == (0, "UPDATE 0", None, ("17",))
        assert len(wire.events_of(Settled)) == 1

    asyncio.run(play())


def test_a_simple_query_of_several_statements_is_one_attempt(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(query("begin; update jobs set owner = 'me' where id = 17; commit"))
        wire.server.data_received(complete("BEGIN") + notice() + complete("UPDATE 1") + complete("COMMIT") + READY)
        (attempted,) = wire.events_of(Attempted)
        assert (attempted.tag, attempted.moved, attempted.jobs) == ("BEGIN; UPDATE 1; COMMIT", 1, ("17",))

    asyncio.run(play())


def test_in_a_pipeline_each_answer_finds_its_statement(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(parse(CLAIM, "claim") + SYNC)
        wire.server.data_received(message(b"1", b"") + READY)
        wire.client.data_received(
            extended("select 1")
            + bind(b"me", b"17", name="claim", portal="p")
            + execute("p")
            + SYNC
            + bind(b"me", b"18", name="claim")
            + execute()
            + SYNC
        )
        wire.server.data_received(complete("SELECT 1") + complete("UPDATE 1") + READY + error("55P03") + READY)
        first, second = wire.events_of(Attempted)
        assert (first.tag, first.sqlstate, first.jobs) == ("UPDATE 1", None, ("17",))
        assert (second.tag, second.sqlstate, second.jobs) == ("", "55P03", ())

    asyncio.run(play())


def test_after_an_error_everything_up_to_the_sync_was_never_tried(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(extended("select 1/0") + extended(CLAIM, b"me", b"17") + FLUSH)
        wire.server.data_received(error("22012"))
        wire.client.data_received(extended(CLAIM, b"me", b"17") + SYNC + extended(CLAIM, b"me", b"17") + SYNC)
        wire.server.data_received(READY + complete("UPDATE 1") + READY)
        assert [each.tag for each in wire.events_of(Attempted)] == ["UPDATE 1"]

    asyncio.run(play())


def test_the_sync_that_copy_swallows_is_not_waited_for(wire: Wire) -> None:
    """libpq sends Execute and Sync, is asked for data, and sends CopyDone and another Sync: one ReadyForQuery in all."""

    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(extended("copy x from stdin") + SYNC)
        wire.server.data_received(message(b"G", b"\0\0\0"))
        wire.client.data_received(message(b"d", b"1\n") + message(b"c", b"") + SYNC)
        wire.server.data_received(complete("COPY 1") + READY)
        wire.client.data_received(extended(CLAIM, b"me", b"17") + SYNC)
        wire.server.data_received(complete("UPDATE 1") + READY)
        assert [each.tag for each in wire.events_of(Attempted)] == ["UPDATE 1"]
        assert wire.session.talk.quiet

    asyncio.run(play())


def test_a_copy_sent_without_waiting_and_one_that_fails_leave_nothing_behind(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.client.data_received(query("copy x from stdin") + message(b"d", b"1\n") + message(b"c", b""))
        wire.server.data_received(message(b"G", b"\0\0\0") + complete("COPY 1") + READY)
        assert wire.session.talk.quiet
        wire.client.data_received(query("copy x from stdin"))
        wire.server.data_received(message(b"G", b"\0\0\0") + error("22P02") + READY)
        wire.client.data_received(message(b"c", b"") + query("select 1"))
        assert wire.session.running == "select 1"
        wire.server.data_received(complete("SELECT 1") + READY)
        assert wire.session.talk.quiet

    asyncio.run(play())


def test_the_servers_last_word_is_an_attempt(wire: Wire) -> None:
    async def play() -> None:
        with_claim_known(wire)
        await wire.connect()
        wire.client.data_received(query("update jobs set owner = 'me' where id = 17"))
        wire.server.data_received(error("57P01", "FATAL"))
        wire.server.eof_received()
        assert [type(each) for each in wire.events][-2:] == [Attempted, SessionClosed]
        assert wire.events_of(Attempted)[0].sqlstate == "57P01"

    asyncio.run(play())


def test_a_notice_of_somebody_else_reaches_the_client(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        theirs = message(b"N", b"SNOTICE\0C00000\0Mqueueproof!{not json}\0\0")
        wire.server.data_received(theirs)
        assert wire.written("client") == GREETING + theirs
        assert not wire.events_of(Noticed)

    asyncio.run(play())


def test_a_latin1_notice_is_understood(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        said = '{"seq":1,"xid":2,"change":"claim","key":"é"}'.encode("latin-1")
        wire.server.data_received(message(b"N", b"C00000\0Mqueueproof!" + said + b"\0\0"))
        assert wire.events_of(Noticed)[0].key == "é"

    asyncio.run(play())


def test_a_client_that_leaves_after_a_refused_encryption_is_remembered(wire: Wire) -> None:
    async def play() -> None:
        from harness.wire.session import Session
        from tests.unit.wire.conftest import Transport

        side = Session(wire.proxy).client_side
        side.connection_made(Transport("client", wire.log))
        side.data_received(struct.pack("!II", 8, 80877103))
        side.connection_lost(None)
        assert wire.proxy.tls_refused
        await wire.connect()
        assert not wire.proxy.tls_refused  # others manage without

    asyncio.run(play())


def test_a_slow_server_slows_the_client_down(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.server.pause_writing()
        assert not wire.client_transport.reading
        wire.server.resume_writing()
        assert wire.client_transport.reading
        wire.client.pause_writing()
        assert not wire.server_transport.reading
        wire.client.resume_writing()
        assert wire.server_transport.reading

    asyncio.run(play())
