"""A stop sign inside the sink: the calls that run into it wait until it is released."""

import asyncio
from dataclasses import dataclass

from harness.contracts.point import Point
from harness.history.recorder import DeadlinePassed


@dataclass(frozen=True)
class HeldCall:
    """A call that stands at a hold."""

    call: int
    worker: int
    key: str
    operation_key: str | None
    token: str | None


class SinkHold:
    """Holds the first ``times`` matching calls (None: all) at CALLING or CALLED, until ``release``."""

    def __init__(self, point: Point, worker: int | None, key: str | None, times: int | None) -> None:
        self.point = point
        self.held: list[HeldCall] = []
        self._worker = worker
        self._key = key
        self._left = times
        self._hit = asyncio.Event()
        self._go = asyncio.Event()

    @property
    def hit(self) -> bool:
        """Whether a call has run into it, now or earlier."""
        return self._hit.is_set()

    @property
    def released(self) -> bool:
        return self._go.is_set()

    def takes(self, point: Point, call: HeldCall) -> bool:
        """Whether this call has to wait here; if so it is counted."""
        if self.released or self._left == 0 or point is not self.point:
            return False
        if self._worker not in (None, call.worker) or self._key not in (None, call.key):
            return False
        if self._left is not None:
            self._left -= 1
        self.held.append(call)
        self._hit.set()
        return True

    async def until_released(self) -> None:
        # Bounded by the caller's own connection and by the sink's close, both of which cancel the call.
        await self._go.wait()

    async def reached(self, within_seconds: float) -> HeldCall:
        """The first call that stands here. Raises DeadlinePassed when none came."""
        try:
            async with asyncio.timeout(within_seconds):
                await self._hit.wait()
        except TimeoutError:
            who = "a call" if self._worker is None else f"a call of worker {self._worker}"
            about = "" if self._key is None else f" for job {self._key[:80]!r}"
            raise DeadlinePassed(
                f"waited {within_seconds:g} s for {who}{about} to stand at {self.point} in the sink; none came"
            ) from None
        return self.held[0]

    def release(self) -> None:
        """Let the held calls go on, and hold no more."""
        self._go.set()
