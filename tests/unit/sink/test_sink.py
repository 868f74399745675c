"""The sink over real sockets: order of the record, kinds, holds, refusals, drops, outages and cuts."""

import asyncio
import contextlib
from urllib.parse import quote

import aiohttp
import pytest

from harness.contracts.point import Point
from harness.history.events import Answered, Applied, Asked, Called, Saw
from harness.history.recorder import DeadlinePassed

UGLY = [
    "plain",
    'it\'s "quoted"',
    "100% <script>alert(1)</script>",
    "tab\tnewline\nnul\x00bell\x07",
    "a/b//c/../d/",
    "/leading",
    "..",
    "?a=b&c#d",
    "ключ 鍵 🔑",
    "%2F is not a slash",
    "+plus plus",
    "x" * 4096,
    "🔑" * 1024,
]


async def raw(url: str, request: bytes):
    """Send bytes as they are, without a client library's own ideas; the connection stays open."""
    host, port = url.removeprefix("http://").split("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    await writer.drain()
    return reader, writer


def post(path: str, **headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: sink", "Content-Length: 0", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize("key", UGLY, ids=range(len(UGLY)))
def test_every_key_arrives_as_it_was(bench, key):
    async def play():
        async with bench("keyed") as b:
            reader, writer = await raw(b.sink.url(7), post("/7/" + quote(key, safe="")))
            assert (await reader.readline()).split()[1] == b"200"
            writer.close()
            called = next(event for event in b.events if isinstance(event, Called))
            assert (called.key, called.worker) == (key, 7)
            _, writer = await raw(b.sink.url(7), post("/7/" + quote(key, safe="")).replace(b"POST", b"GET"))
            await b.until(Asked)
            writer.close()
            assert [(e.key, e.found) for e in b.events if isinstance(e, Asked)] == [(key, True)]

    asyncio.run(play())


def test_a_slash_or_question_mark_left_bare_still_belongs_to_the_key(bench):
    async def play():
        async with bench() as b:
            _, writer = await raw(b.sink.url(1), post("/1/a/b?c=d"))
            await b.until(Answered)
            writer.close()
            assert b.tale[0] == ("called", "a/b?c=d")

    asyncio.run(play())


def test_bytes_that_are_no_text_do_not_stop_the_record(bench):
    async def play():
        async with bench("keyed") as b:
            request = b"POST /1/%FF HTTP/1.1\r\nHost: s\r\nIdempotency-Key: \xff\xfe\r\nContent-Length: 0\r\n\r\n"
            _, writer = await raw(b.sink.url(1), request)
            await b.until(Answered)
            writer.close()
            called = next(event for event in b.events if isinstance(event, Called))
            assert (called.key, called.operation_key) == ("\\xff", "\\xff\\xfe")

    asyncio.run(play())


def test_called_applied_answered_in_this_order(bench):
    async def play():
        async with bench() as b:
            assert await b.call("j", Idempotency_Key="op", Fencing_Token="3") == 200
            assert b.tale == [("called", "j"), ("applied", "effect"), ("answered", 200)]
            called = b.events[0]
            assert isinstance(called, Called)
            assert (called.operation_key, called.token, called.call) == ("op", "3", 1)

    asyncio.run(play())


@pytest.mark.parametrize(("kind", "second"), [("naive", "effect"), ("keyed", "known"), ("fenced", "known")])
def test_a_repeat_is_an_effect_only_where_nothing_dedupes(bench, kind, second):
    async def play():
        async with bench(kind) as b:
            assert [await b.call("j"), await b.call("j", worker=2)] == [200, 200]
            assert [e.outcome for e in b.events if isinstance(e, Applied)] == ["effect", second]
            assert len(b.sink.effects) == (2 if kind == "naive" else 1)

    asyncio.run(play())


def test_keyed_goes_by_the_operation_key_not_by_the_job(bench):
    async def play():
        async with bench("keyed") as b:
            for operation in ("a", "a", "b"):
                await b.call("j", Idempotency_Key=operation)
            assert [e.outcome for e in b.events if isinstance(e, Applied)] == ["effect", "known", "effect"]

    asyncio.run(play())


def test_fenced_refuses_an_older_token_and_says_so(bench):
    async def play():
        async with bench("fenced") as b:
            statuses = [
                await b.call("j", Idempotency_Key=f"op{n}", Fencing_Token=token)
                for n, token in enumerate(["2", "10", "9", "10", "11"])
            ]
            assert statuses == [200, 200, 409, 200, 200]
            assert [e.outcome for e in b.events if isinstance(e, Applied)][2] == "stale"
            assert await b.call("other", Fencing_Token="1") == 200

    asyncio.run(play())


def test_asking(bench):
    async def play():
        async with bench("keyed") as b:
            assert await b.ask("j") == 404
            await b.call("j", Idempotency_Key="op")
            assert [await b.ask("j"), await b.ask("op")] == [200, 200]
            assert [await b.ask("j", Idempotency_Key="op"), await b.ask("j", Idempotency_Key="op2")] == [200, 404]
            assert [e.found for e in b.events if isinstance(e, Asked)] == [False, True, True, True, False]

    asyncio.run(play())


def test_a_naive_sink_cannot_be_asked(bench):
    async def play():
        async with bench("naive") as b:
            await b.call("j")
            assert await b.ask("j") == 405

    asyncio.run(play())


def test_a_request_that_names_no_job_is_not_a_call(bench):
    async def play():
        async with bench() as b:
            for path in ("", "/1", "/1/", "/one/j", "/-1/j"):
                async with b.http.post(f"http://127.0.0.1:{b.sink.port}{path}") as answer:
                    assert answer.status == 404
            assert {type(event) for event in b.events} == {Saw}

    asyncio.run(play())


@pytest.mark.parametrize(
    ("point", "seen"),
    [(Point.CALLING, [("called", "j")]), (Point.CALLED, [("called", "j"), ("applied", "effect")])],
)
def test_a_hold_stops_the_call_exactly_there(bench, point, seen):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(point, worker=1)
            calling = asyncio.create_task(b.call("j"))
            held = await hold.reached(5)
            assert (held.worker, held.key) == (1, "j")
            assert hold.hit
            assert b.tale == seen
            assert await b.call("k", worker=2) == 200  # others pass
            hold.release()
            assert await calling == 200
            assert await b.call("j") == 200  # and it holds no more

    asyncio.run(play())


def test_a_hold_takes_as_many_as_told(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLING, times=None)
            calls = [asyncio.create_task(b.call(f"j{n}", worker=n)) for n in range(5)]
            await b.until(Called, 5)
            assert len(hold.held) == 5
            hold.release()
            assert await asyncio.gather(*calls) == [200] * 5

    asyncio.run(play())


def test_waiting_for_a_hold_has_an_end_and_a_reason(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLING, worker=3, key="j")
            with pytest.raises(DeadlinePassed, match="worker 3 for job 'j' to stand at calling"):
                await hold.reached(0.01)

    asyncio.run(play())


def test_a_caller_that_dies_while_held_is_seen_at_once_and_discarded(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLING)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await hold.reached(5)
            writer.transport.abort()
            await b.until(Answered)
            hold.release()
            await b.call("other")
            assert b.tale[:2] == [("called", "j"), ("answered", None)]
            assert [effect.key for effect in b.sink.effects] == ["other"]

    asyncio.run(play())


def test_a_death_the_loop_has_not_read_yet_counts_all_the_same(bench):
    """The lab sees a worker's exit and releases the hold in one breath."""

    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLING)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await hold.reached(5)
            raw_socket = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                raw_socket.shutdown(2)  # no loop iteration between the end and the release
            hold.release()
            await b.until(Answered)
            writer.close()
            assert b.tale == [("called", "j"), ("answered", None)]

    asyncio.run(play())


def test_a_caller_that_dies_after_its_effect_leaves_the_effect(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLED)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await hold.reached(5)
            writer.transport.abort()
            await b.until(Answered)
            assert b.tale == [("called", "j"), ("applied", "effect"), ("answered", None)]
            gone = b.events[-1]
            assert isinstance(gone, Answered)
            assert gone.why == "caller gone"

    asyncio.run(play())


def test_apply_late_applies_a_dead_callers_call_once_released(bench):
    async def play():
        async with bench() as b:
            b.sink.apply_late = True
            hold = b.sink.hold(Point.CALLING)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await hold.reached(5)
            writer.transport.abort()
            await b.until(Answered)
            assert not b.sink.effects
            hold.release()
            await b.until(Applied)
            assert b.tale == [("called", "j"), ("answered", None), ("applied", "effect")]

    asyncio.run(play())


def test_the_outside_takes_its_time_before_the_effect_not_before_a_refusal(bench):
    async def play():
        async with bench() as b:
            b.sink.service_seconds = 0.2
            b.sink.answer_with(503, key="refused")
            assert await b.call("refused") == 503
            assert await b.call("j") == 200
            called, applied = (
                e.t for e in b.record.entries if isinstance(e.what, Called | Applied) and e.what.key == "j"
            )
            assert (applied - called) / 1e9 >= 0.2
            refused = [e.t for e in b.record.entries if e.what.key == "refused"]
            assert (refused[-1] - refused[0]) / 1e9 < 0.2

    asyncio.run(play())


def test_a_caller_that_dies_during_the_service_has_no_effect(bench):
    async def play():
        async with bench() as b:
            b.sink.service_seconds = 30
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await b.until(Called)
            writer.transport.abort()
            await b.until(Answered)
            assert b.tale == [("called", "j"), ("answered", None)]

    asyncio.run(play())


@pytest.mark.parametrize("status", [400, 422, 500, 503])
def test_a_refusal_has_no_effect(bench, status):
    async def play():
        async with bench("keyed") as b:
            script = b.sink.answer_with(status, key="j", times=2)
            assert [await b.call("j") for _ in range(3)] == [status, status, 200]
            assert script.hits == 2
            assert [e.outcome for e in b.events if isinstance(e, Applied)] == ["effect"]

    asyncio.run(play())


def test_a_refusal_goes_on_until_cancelled(bench):
    async def play():
        async with bench() as b:
            script = b.sink.answer_with(503, worker=1)
            assert [await b.call("j"), await b.call("j"), await b.call("j", worker=2)] == [503, 503, 200]
            script.cancel()
            assert await b.call("j") == 200

    asyncio.run(play())


@pytest.mark.parametrize("status", [200, 204, 302, 600])
def test_a_refusal_must_be_one(bench, status):
    async def play():
        async with bench() as b:
            with pytest.raises(ValueError, match="400 to 599"):
                b.sink.answer_with(status)

    asyncio.run(play())


def test_only_calling_and_called_can_be_held(bench):
    async def play():
        async with bench() as b:
            with pytest.raises(ValueError, match="cannot hold at claimed"):
                b.sink.hold(Point.CLAIMED)

    asyncio.run(play())


def test_apply_then_refuse_has_the_effect(bench):
    async def play():
        async with bench("keyed") as b:
            b.sink.apply_then_refuse(502, key="j")
            assert [await b.call("j"), await b.call("j")] == [502, 200]
            assert [e.outcome for e in b.events if isinstance(e, Applied)] == ["effect", "known"]

    asyncio.run(play())


def test_a_dropped_reply_still_counts(bench):
    async def play():
        async with bench("keyed") as b:
            b.sink.drop_reply("j")
            reader, writer = await raw(b.sink.url(1), post("/1/j"))
            assert await reader.read() == b""
            writer.close()
            assert b.tale == [("called", "j"), ("applied", "effect"), ("answered", None)]
            assert await b.ask("j") == 200

    asyncio.run(play())


def test_down_refuses_breaks_what_is_open_and_comes_back_on_the_same_port(bench):
    async def play():
        async with bench("keyed") as b:
            assert await b.call("before") == 200  # leaves an idle connection in the client's pool
            address = b.sink.url(1)
            hold = b.sink.hold(Point.CALLED, key="held")
            held = asyncio.create_task(b.call("held"))
            await hold.reached(5)
            await b.sink.down()
            with pytest.raises(aiohttp.ClientError):
                await held
            for _ in range(3):
                with pytest.raises(aiohttp.ClientError):
                    await b.call("during")
            broken = b.events[-1]
            assert isinstance(broken, Answered)
            assert (broken.status, broken.why) == (None, "sink down")
            await b.sink.up()
            await b.sink.up()
            assert b.sink.url(1) == address
            assert [await b.call("after"), await b.ask("held")] == [200, 200]  # what was applied stays applied

    asyncio.run(play())


def test_a_cut_worker_waits_while_others_pass_and_is_served_when_healed(bench):
    async def play():
        async with bench() as b:
            b.sink.cut(1)
            lost = asyncio.create_task(b.call("j"))
            assert await b.call("k", worker=2) == 200
            assert all(event.worker == 2 for event in b.events if isinstance(event, Called))
            b.sink.heal(1)
            assert await lost == 200

    asyncio.run(play())


def test_a_cut_keeps_back_the_reply_of_a_call_that_had_arrived(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLED)
            calling = asyncio.create_task(b.call("j"))
            await hold.reached(5)
            b.sink.cut(1)
            hold.release()
            assert await b.call("k", worker=2) == 200
            assert not calling.done()
            b.sink.heal(1)
            assert await calling == 200

    asyncio.run(play())


def test_what_a_cut_worker_sent_before_it_gave_up_never_arrives(bench):
    async def play():
        async with bench() as b:
            b.sink.cut(1)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            assert await b.call("k", worker=2) == 200
            writer.transport.abort()
            b.sink.heal(1)
            assert await b.call("l", worker=1) == 200
            assert [event.key for event in b.events if isinstance(event, Called)] == ["k", "l"]

    asyncio.run(play())


def test_closing_ends_held_calls_and_records_their_end(bench):
    async def play():
        async with bench() as b:
            hold = b.sink.hold(Point.CALLING)
            _, writer = await raw(b.sink.url(1), post("/1/j"))
            await hold.reached(5)
            port = b.sink.port
            await b.sink.close()
            writer.close()
            assert b.tale == [("called", "j"), ("answered", None)]
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(play())


def test_a_hundred_racing_calls_of_one_key_have_one_effect(bench):
    async def play():
        async with bench("keyed") as b:
            assert set(await asyncio.gather(*(b.call("j", worker=n) for n in range(100)))) == {200}
            assert sorted(e.outcome for e in b.events if isinstance(e, Applied)) == ["effect"] + ["known"] * 99

    asyncio.run(play())
