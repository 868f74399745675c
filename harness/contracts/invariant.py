"""What an invariant is: one judgement, a pure function of one play's history."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.contracts.verdict import Finding

Story = TypeVar("Story")


@dataclass(frozen=True)
class Unknown:
    """What could not be judged and why; turns a pass into inconclusive, never a fail into anything else."""

    reason: str
    witness: tuple[int, ...] = ()


@dataclass(frozen=True)
class Invariant(Generic[Story]):
    """One judgement. ``judge`` yields findings (broken) and unknowns (could not tell).

    ``applies`` returns a reason when the subject lacks what is judged, else None. ``caught_by`` names the broken
    queue, in ``harness/subjects/broken``, that this invariant must catch. ``mend`` is what whoever owns a queue that was caught
    usually has to change, in one or two sentences; back-ticks set off code.
    """

    name: str
    title: str
    serves: tuple[str, ...]
    broken_queue: str
    mend: str
    judge: Callable[[Story], Iterable[Finding | Unknown]]
    applies: Callable[[Story], str | None]


def always(_: object) -> str | None:
    """For an invariant that every subject can be judged by."""
    return None


def invariant(
    *, serves: tuple[str, ...], broken_queue: str, mend: str, applies: Callable[[Story], str | None] = always
) -> Callable[[Callable[[Story], Iterable[Finding | Unknown]]], Invariant[Story]]:
    """Declare the decorated pure function an invariant. Its name is the function's, its title the docstring's first line."""

    def declare(judge: Callable[[Story], Iterable[Finding | Unknown]]) -> Invariant[Story]:
        title = (judge.__doc__ or "").strip().splitlines()
        if not title:
            raise TypeError(f"invariant {judge.__name__} needs a docstring: its first line is its title")
        return Invariant(judge.__name__, title[0].rstrip("."), serves, broken_queue, mend, judge, applies)

    return declare
