"""A narrow cable, in a time that jumps: how much passes, when, in which order, and what is left with who sends it."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire import link as link_module
from harness.wire.bucket import TokenBucket
from harness.wire.link import MOST_WAITING_BYTES, Link
from tests.unit.wire.conftest import Wire
from tests.unit.wire.test_session import query

RATE = 10_000
Run = Callable[[Coroutine[Any, Any, None]], None]


class JumpingLoop(asyncio.SelectorEventLoop):
    """Nothing is waited for: when all are asleep, it is the next one's time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None) -> Any:
            if timeout:
                self.now += timeout
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return self.now


@pytest.fixture
def in_jumping_time(monkeypatch: pytest.MonkeyPatch) -> Run:
    loop = JumpingLoop()
    monkeypatch.setattr(link_module, "time", SimpleNamespace(monotonic=loop.time))

    def run(story: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(asyncio.wait_for(story, 3600))

    return run


class Cable:
    """A link, and what came out of it when."""

    def __init__(self, bucket: TokenBucket | None, *, cut: bool = False, delay_seconds: float = 0.0) -> None:
        self.out: list[tuple[float, bytes | None]] = []
        self.brakes: list[bool] = []
        self.cleared = 0
        self.began = asyncio.get_running_loop().time()
        self.link = Link(self._deliver, self._clear, self._brake, cut=cut, delay_seconds=delay_seconds, bucket=bucket)

    def _deliver(self, piece: bytes | None) -> None:
        self.out.append((asyncio.get_running_loop().time() - self.began, piece))

    def _clear(self) -> None:
        self.cleared += 1

    def _brake(self, *, full: bool) -> None:
        self.brakes.append(full)

    @property
    def came(self) -> bytes:
        return b"".join(piece or b"" for _, piece in self.out)

    @property
    def last_at(self) -> float:
        return self.out[-1][0]

    async def all_out(self, size: int) -> None:
        while len(self.came) < size:
            await asyncio.sleep(0.001)


@given(
    st.floats(10, 1e7),
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), min_size=1, max_size=40),
)
def test_no_time_sees_more_than_the_rate_and_one_burst(rate: float, steps: list[tuple[float, float]]) -> None:
    """Each step rests a while and then draws a share of a burst, which passes when it is earned."""
    bucket = TokenBucket(rate)
    now, passed = 0.0, []
    for rest, share in steps:
        now += rest
        size = max(1, int(bucket.burst_bytes * share))
        now = max(now, bucket.take(size, now))
        passed.append((now, size))
    for first in range(len(passed)):
        since = passed[first][0]
        seen = 0
        for at, size in passed[first:]:
            seen += size
            assert seen <= (rate * (at - since) + bucket.burst_bytes) * (1 + 1e-6) + 1e-3


def test_a_line_without_width_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes_per_second 0"):
        TokenBucket(0)


@pytest.mark.parametrize("size", [700, 5_000, 123_456])
def test_it_takes_exactly_as_long_as_the_rate_says(in_jumping_time: Run, size: int) -> None:
    async def story() -> None:
        bucket = TokenBucket(RATE)
        cable = Cable(bucket)
        sent = bytes(n % 251 for n in range(size))
        cable.link.put(sent)
        await cable.all_out(size)
        assert cable.came == sent
        assert cable.last_at == pytest.approx((size - bucket.burst_bytes) / RATE, abs=1e-6)

    in_jumping_time(story())


def test_after_a_rest_no_more_than_one_burst_comes_at_once(in_jumping_time: Run) -> None:
    async def story() -> None:
        bucket = TokenBucket(RATE)
        cable = Cable(bucket)
        await asyncio.sleep(100)
        cable.link.put(b"x" * (bucket.burst_bytes + 1))
        assert len(cable.came) == bucket.burst_bytes
        await cable.all_out(bucket.burst_bytes + 1)
        assert cable.last_at == pytest.approx(100 + 1 / RATE)

    in_jumping_time(story())


def test_two_connections_share_the_line_and_each_gets_a_turn(in_jumping_time: Run) -> None:
    async def story() -> None:
        bucket = TokenBucket(RATE)
        long, short = Cable(bucket), Cable(bucket)
        long.link.put(b"l" * 50_000)
        short.link.put(b"s" * 1_000)
        await short.all_out(1_000)
        assert short.last_at < 0.4  # not behind the 5 s of the other
        await long.all_out(50_000)
        assert long.last_at == pytest.approx((51_000 - bucket.burst_bytes) / RATE, abs=1e-6)

    in_jumping_time(story())


def test_small_pieces_and_the_end_keep_their_order(in_jumping_time: Run) -> None:
    async def story() -> None:
        cable = Cable(TokenBucket(RATE))
        for number in range(2_000):
            cable.link.put(b"%05d" % number)
        cable.link.put(None)
        await cable.all_out(10_000)
        assert cable.came == b"".join(b"%05d" % number for number in range(2_000))
        assert [piece for _, piece in cable.out].index(None) == len(cable.out) - 1

    in_jumping_time(story())


def test_healed_it_delivers_all_at_once(in_jumping_time: Run) -> None:
    async def story() -> None:
        cable = Cable(TokenBucket(100), delay_seconds=0.2)
        cable.link.put(b"x" * 10_000)
        await asyncio.sleep(1)
        assert 0 < len(cable.came) < 200
        cable.link.bucket, cable.link.delay_seconds = None, 0
        cable.link.changed()
        assert len(cable.came) == 10_000
        assert cable.cleared == 1
        assert cable.link.clear

    in_jumping_time(story())


def test_a_cut_and_a_narrow_line_heal_in_either_order(in_jumping_time: Run) -> None:
    async def story() -> None:
        for narrow_first in (True, False):
            cable = Cable(TokenBucket(RATE))
            cable.link.put(b"a" * 3_000)
            await asyncio.sleep(0.1)
            cable.link.cut = True
            cut_at = len(cable.came)
            cable.link.put(b"b" * 3_000)
            await asyncio.sleep(5)
            assert len(cable.came) == cut_at < 3_000
            if narrow_first:
                cable.link.bucket = None
                cable.link.changed()
                assert len(cable.came) == cut_at
            cable.link.cut = False
            cable.link.changed()
            await cable.all_out(6_000)
            assert cable.came == b"a" * 3_000 + b"b" * 3_000
            assert (cable.last_at == pytest.approx(5.1)) == narrow_first

    in_jumping_time(story())


def test_what_does_not_fit_is_left_with_the_sender(in_jumping_time: Run) -> None:
    async def story() -> None:
        cable = Cable(TokenBucket(RATE))
        cable.link.put(b"x" * (MOST_WAITING_BYTES + 2_000))
        assert cable.brakes == [True]
        await cable.all_out(3_000)
        assert cable.brakes == [True, False]
        cable.link.put(b"x" * MOST_WAITING_BYTES)
        assert cable.brakes == [True, False, True]
        cable.link.bucket = None
        cable.link.changed()
        assert cable.brakes == [True, False, True, False]

    in_jumping_time(story())


def test_a_worker_is_not_read_while_its_line_is_full(wire: Wire) -> None:
    async def play() -> None:
        await wire.connect()
        wire.log.clear()
        wire.proxy.throttle(1_000)
        assert not wire.client.direct
        text = query(f"select '{'x' * MOST_WAITING_BYTES * 2}'")
        wire.client.data_received(text)
        assert not wire.client_transport.reading
        assert len(wire.written("server")) < 1_000
        wire.proxy.throttle(None)
        assert wire.client_transport.reading
        assert wire.written("server") == text
        assert wire.client.direct

    asyncio.run(play())
