"""What a scenario is: one story, what it serves, what must hold, and what must have happened."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contracts.fact import Fact
from harness.contracts.invariant import Invariant
from harness.contracts.subject import Subject

HEADINGS = ("What happens", "Why it matters", "What must hold")


@dataclass(frozen=True)
class Need:
    """Something a subject must have for a scenario to apply; ``missing`` says in a sentence why it does not, or None.

    The second argument is the set of names of what the probe learned ("renews", "stops at claimed", ...).
    """

    missing: Callable[[Subject, frozenset[str]], str | None]


@dataclass(frozen=True)
class Scenario:
    """One story. ``play`` receives the lab; everything else is declared so that it can be listed without running it.

    ``hurts`` names what the story damages beyond its own database: "server", "clock" or "settings" (it then gets a
    cluster of its own), or None. ``lease_seconds`` is the lease that the subject is given where the clock can be moved, and
    its heartbeat in proportion. ``record`` is which of the acceptance report's four records it feeds, if any.
    """

    name: str
    title: str
    docstring: str
    play: Callable[[Any], Awaitable[None]]
    serves: tuple[str, ...]
    must_hold: tuple[Invariant[Any], ...]
    must_happen: tuple[Fact[Any], ...]
    needs: tuple[Need, ...]
    hurts: str | None
    record: str | None
    deadline_seconds: float
    excuses: tuple[str, ...]
    lease_seconds: float | None = None


def scenario(
    *,
    serves: Sequence[str],
    must_hold: Sequence[Invariant[Any]],
    must_happen: Sequence[Fact[Any]],
    needs: Sequence[Need] = (),
    hurts: str | None = None,
    record: str | None = None,
    deadline_seconds: float = 45,
    excuses: Sequence[str] = (),
    lease_seconds: float | None = None,
) -> Callable[[Callable[[Any], Awaitable[None]]], Scenario]:
    """Declare the decorated coroutine a scenario.

    Every invariant judges every play; ``must_hold`` names those the story is about, ``excuses`` the names of those that
    the story itself makes meaningless.
    """

    def declare(play: Callable[[Any], Awaitable[None]]) -> Scenario:
        doc = (play.__doc__ or "").strip()
        absent = [heading for heading in HEADINGS if heading not in doc]
        if absent:
            raise TypeError(f"scenario {play.__name__}: its docstring lacks the headings {', '.join(absent)}")
        return Scenario(
            name=play.__name__,
            title=play.__name__.replace("_", " "),
            docstring=doc,
            play=play,
            serves=tuple(serves),
            must_hold=tuple(must_hold),
            must_happen=tuple(must_happen),
            needs=tuple(needs),
            hurts=hurts,
            record=record,
            deadline_seconds=deadline_seconds,
            excuses=tuple(excuses),
            lease_seconds=lease_seconds,
        )

    return declare
