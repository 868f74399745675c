"""What is explored: something that can be set up anew, asked which moves there are, and moved."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.explore.footprint import Footprint
from harness.explore.schedule import Move


class Diverged(Exception):
    """The same moves led elsewhere than before. The message says what differed."""


@dataclass(frozen=True)
class Ending:
    """How one schedule ended. ``findings`` are what broke, by name; ``detail`` is the stage's own record of it."""

    findings: tuple[str, ...] = ()
    undecided: str = ""
    detail: object = field(default=None, compare=False)


class Stage(Protocol):
    """One case on a real server. The same moves from the same beginning lead to the same place."""

    async def begin(self) -> None:
        """Back to the beginning, nobody has moved."""

    async def enabled(self) -> Sequence[Move]:
        """The moves there are now, in an order of their own; none when the run is over."""

    async def perform(self, move: Move) -> Footprint:
        """Make one move and wait until everybody stands still or is blocked. Says what it touched."""

    async def end(self) -> Ending:
        """Judge what happened since ``begin``."""
