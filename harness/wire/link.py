"""The cable between two sockets, one direction: it may hold everything back (a silent cut) or deliver late, never reorder."""

import asyncio
from collections import deque
from collections.abc import Callable


class Link:
    """Passes pieces to ``deliver`` in order; None is the end of the stream and travels like any byte."""

    __slots__ = ("_cleared", "_deliver", "_waiting", "cut", "delay_seconds")

    def __init__(
        self,
        deliver: Callable[[bytes | None], None],
        cleared: Callable[[], None],
        *,
        cut: bool,
        delay_seconds: float,
    ) -> None:
        self._deliver = deliver
        self._cleared = cleared  # called when the last that was late has been delivered
        self._waiting: deque[bytes | None] = deque()
        self.cut = cut
        self.delay_seconds = delay_seconds

    @property
    def clear(self) -> bool:
        """Whether a piece put in now would come out at once."""
        return not (self.cut or self.delay_seconds or self._waiting)

    def put(self, piece: bytes | None) -> None:
        if self.clear:
            self._deliver(piece)
            return
        self._waiting.append(piece)
        if not self.cut:
            asyncio.get_running_loop().call_later(self.delay_seconds, self._next)

    def heal(self) -> None:
        """End the cut and deliver all that waited."""
        self.cut = False
        while self._waiting and not self.cut:
            self._deliver(self._waiting.popleft())

    def _next(self) -> None:
        if self._waiting and not self.cut:
            self._deliver(self._waiting.popleft())
            if self.clear:
                self._cleared()
