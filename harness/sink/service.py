"""What a sink asks about each call when jobs differ: how long the outside takes, and whether it fails. And whom it tells."""

from typing import Protocol

from harness.history.events import AnyEvent
from harness.sink.hold import HeldCall


class Service(Protocol):
    """The outside's own behaviour, call by call."""

    async def serve(self, call: HeldCall) -> int | None:
        """Take the time that this call takes. None lets it have its effect; a 4xx or 5xx refuses it without one."""


class Records(Protocol):
    """Who is told of every call: the recorder of a play, or the trace of a load run."""

    def record(self, event: AnyEvent, /) -> object:
        """Note one event."""
