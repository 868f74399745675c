"""What a fact is: something that must have happened, or the scenario proves nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Story = TypeVar("Story")


@dataclass(frozen=True)
class Fact(Generic[Story]):
    """A sentence and the pure predicate over a story that says whether it is true.

    ``evidence`` returns the numbers of the history entries that show it, or an empty tuple when it did not happen.
    """

    sentence: str
    evidence: Callable[[Story], tuple[int, ...]]
