"""What the sink was told to do to the next calls instead of applying and answering them properly."""

from dataclasses import dataclass
from typing import Literal

Deed = Literal["answer", "apply then answer", "apply then drop", "answer twice"]


@dataclass
class Script:
    """One instruction for the calls that match it, ``times`` of them (None: until ``cancel``). ``hits`` counts them."""

    deed: Deed
    status: int
    key: str | None
    worker: int | None
    times: int | None
    hits: int = 0

    @property
    def spent(self) -> bool:
        """Whether it will match nothing any more."""
        return self.times is not None and self.hits >= self.times

    def takes(self, worker: int, key: str) -> bool:
        """Whether this call is one of them; if so it is counted."""
        if self.spent:
            return False
        if self.worker not in (None, worker) or self.key not in (None, key):
            return False
        self.hits += 1
        return True

    def cancel(self) -> None:
        """From now on nothing matches."""
        self.times = 0
