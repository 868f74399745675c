"""The cable between two sockets, one direction: it may hold all back (a silent cut), deliver late or slowly, never reorder."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from harness.wire.bucket import TokenBucket

MOST_WAITING_BYTES = 64 * 1024


class Brake(Protocol):
    """Told that a narrow link has as much waiting as it will take, and when that is over."""

    def __call__(self, *, full: bool) -> None: ...


class Link:
    """Passes pieces to ``deliver`` in order; None is the end of the stream and travels like any byte.

    ``cut``, ``delay_seconds`` and ``bucket`` may be set at any time; ``changed`` then makes it so for what waits as well.
    """

    __slots__ = (
        "_brake",
        "_cleared",
        "_deliver",
        "_earned_at",
        "_is_full",
        "_is_moving",
        "_timer",
        "_waiting",
        "_waiting_bytes",
        "bucket",
        "cut",
        "delay_seconds",
    )

    def __init__(
        self,
        deliver: Callable[[bytes | None], None],
        cleared: Callable[[], None],
        brake: Brake,
        *,
        cut: bool,
        delay_seconds: float,
        bucket: TokenBucket | None,
    ) -> None:
        self._deliver = deliver
        self._cleared = cleared  # called when the last that was late has been delivered
        self._brake = brake
        self._waiting: deque[tuple[float, bytes | None]] = deque()  # since when
        self._waiting_bytes = 0
        self._earned_at: float | None = None  # when the first that waits may pass the bucket; None: not asked yet
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False
        self._is_moving = False
        self.cut = cut
        self.delay_seconds = delay_seconds
        self.bucket = bucket

    @property
    def clear(self) -> bool:
        """Whether a piece put in now would come out at once."""
        return not (self.cut or self.delay_seconds or self.bucket or self._waiting)

    def put(self, piece: bytes | None) -> None:
        if self.clear:
            self._deliver(piece)
            return
        self._waiting.append((time.monotonic(), piece))
        self._waiting_bytes += len(piece or b"")
        self._move()
        self._press()

    def changed(self) -> None:
        """Deliver what no longer has to wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.bucket is None:
            self._earned_at = None
        self._move()

    def _move(self) -> None:
        """Deliver all that is due, and come back when the next is."""
        if self._is_moving or self._timer is not None:
            return  # a delivery has set off another: order is kept by the one who is at it
        self._is_moving = True
        try:
            while self._waiting and not self.cut:
                wait_seconds = self._due_at() - time.monotonic()
                if wait_seconds > 0:
                    self._timer = asyncio.get_running_loop().call_later(wait_seconds, self.changed)
                    break
                piece = self._waiting.popleft()[1]
                self._waiting_bytes -= len(piece or b"")
                self._earned_at = None
                self._deliver(piece)
        finally:
            self._is_moving = False
        self._press()
        if self.clear:
            self._cleared()

    def _due_at(self) -> float:
        """When the first that waits may be delivered. What is longer than a burst goes in pieces, so that others get a turn."""
        since, piece = self._waiting[0]
        due_at = since + self.delay_seconds
        if not piece or self.bucket is None or due_at > time.monotonic():
            return due_at
        if self._earned_at is None:
            size = self.bucket.burst_bytes
            if len(piece) > size:
                self._waiting.popleft()
                parts = [piece[at : at + size] for at in range(0, len(piece), size)]
                self._waiting.extendleft((since, part) for part in reversed(parts))
            self._earned_at = self.bucket.take(min(size, len(piece)), time.monotonic())
        return self._earned_at

    def _press(self) -> None:
        """What does not fit through is left with who sends it: a slow line must not become our memory."""
        full = self.bucket is not None and self._waiting_bytes > MOST_WAITING_BYTES
        if full != self._is_full:
            self._is_full = full
            self._brake(full=full)
