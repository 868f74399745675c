"""What a fault is: one injury that proves that it landed, heals on every way out, and lasts no longer than it says."""

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

Target = TypeVar("Target")

Strikes = Literal["worker", "connection", "server", "table", "sink", "clock"]


class Inapplicable(Exception):
    """A fault cannot be injected here. The message is the reason: a right that is missing, a thing that the queue lacks."""


@dataclass(frozen=True)
class Landed:
    """A fault has taken effect; ``evidence`` is what the server, the process table or the wire shows.

    ``worker`` is the number of the one worker that it struck, 0 when it struck all or none.
    """

    evidence: str
    worker: int = 0
    key: str | None = None


@dataclass(frozen=True)
class Fault(Generic[Target]):
    """One injury. ``injure`` is a context manager that is entered once it has landed and left when it has healed.

    ``title`` is its name in a history. ``strikes`` says what it hurts: two faults that strike the same thing are not put
    together unasked. ``holds_seconds`` is how long a drill keeps it up, 0 for one that is over at once, and ``holds_leases``
    how many declared leases at least: a holder's silence means something only past its lease. It heals by itself
    after ``lasts_at_most_seconds``, and landing and healing have deadlines of their own. ``excuses`` names the invariants that it
    makes meaningless. ``needs_results`` says that it lands only while jobs are being ended,
    ``is_borne`` that a queue has to go on under it as if nothing were.
    """

    name: str
    title: str
    docstring: str
    strikes: Strikes
    needs: tuple[Callable[[Target], str | None], ...]
    injure: Callable[[Target], AbstractAsyncContextManager[Landed]]
    holds_seconds: float
    holds_leases: float
    lands_within_seconds: float
    lasts_at_most_seconds: float
    heals_within_seconds: float
    excuses: tuple[str, ...] = ()
    needs_results: bool = False
    is_borne: bool = False

    def missing(self, target: Target) -> str | None:
        """Why it cannot be injected into this target, or None. ``Inapplicable`` may still say so when it is tried."""
        return next((why for need in self.needs if (why := need(target)) is not None), None)


class Declares(Protocol):
    """Makes a fault of an asynchronous generator function."""

    def __call__(self, injure: Callable[[Target], AsyncIterator[Landed]]) -> Fault[Target]: ...


def fault(
    title: str,
    *,
    strikes: Strikes,
    needs: Sequence[Callable[[Any], str | None]] = (),
    holds_seconds: float = 2.0,
    holds_leases: float = 0.0,
    lands_within_seconds: float = 10.0,
    lasts_at_most_seconds: float = 600.0,
    heals_within_seconds: float = 15.0,
    excuses: Sequence[str] = (),
    needs_results: bool = False,
    is_borne: bool = False,
) -> Declares:
    """Declare the decorated asynchronous generator a fault: it yields once, when it has landed, and heals afterwards."""

    def declare(injure: Callable[[Target], AsyncIterator[Landed]]) -> Fault[Target]:
        doc = inspect.cleandoc(injure.__doc__ or "")
        if not doc:
            raise TypeError(f"fault {injure.__name__} needs a docstring: it says what happens in production")
        return Fault(
            name=injure.__name__,
            title=title,
            docstring=doc,
            strikes=strikes,
            needs=tuple(needs),
            injure=asynccontextmanager(injure),
            holds_seconds=holds_seconds,
            holds_leases=holds_leases,
            lands_within_seconds=lands_within_seconds,
            lasts_at_most_seconds=lasts_at_most_seconds,
            heals_within_seconds=heals_within_seconds,
            excuses=tuple(excuses),
            needs_results=needs_results,
            is_borne=is_borne,
        )

    return declare
