"""A schedule: the moves of one run in their order, and its one-line form ``w1w2e1w1``."""

import enum
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.contracts.problem import BadInput

_MOVE = re.compile(r"([weks])(\d+)")


class Kind(enum.StrEnum):
    """What a move does. The value is its letter in a schedule."""

    STEP = "w"  # worker N makes its next step
    EXPIRE = "e"  # the lease of job N ends
    KILL = "k"  # worker N is killed, its backends with it
    SEVER = "s"  # worker N makes its next step, and its reply is lost


@dataclass(frozen=True, order=True)
class Move:
    """One move. ``number`` is a worker's, or for a lease's end the place of the job among those enqueued."""

    kind: Kind
    number: int

    @property
    def worker(self) -> int:
        """The worker whose move it is, 0 when it is the harness's own."""
        return 0 if self.kind is Kind.EXPIRE else self.number

    @property
    def thread(self) -> str:
        """Whose order it belongs to: moves of one thread never change places."""
        return f"w{self.number}" if self.worker else f"e{self.number}"

    def __str__(self) -> str:
        return f"{self.kind.value}{self.number}"


Schedule = tuple[Move, ...]


def step(worker: int) -> Move:
    """Worker N's next step."""
    return Move(Kind.STEP, worker)


def told(moves: Iterable[Move]) -> str:
    """The one-line form, which ``read`` takes back."""
    return "".join(map(str, moves))


def read(text: str) -> Schedule:
    """A schedule from its one-line form. Raises BadInput that says where it stops making sense."""
    moves: list[Move] = []
    at = 0
    words = text.replace(",", " ").split()
    joined = "".join(words)
    while at < len(joined):
        found = _MOVE.match(joined, at)
        if found is None or int(found[2]) < 1:
            raise BadInput(
                f"--replay {text[:80]!r}: {joined[at : at + 10]!r} is no move; moves are w1 (worker 1 steps), e1 (the lease of"
                " job 1 ends), k1 (worker 1 is killed), s1 (worker 1 steps and its reply is lost)"
            )
        moves.append(Move(Kind(found[1]), int(found[2])))
        at = found.end()
    if not moves:
        raise BadInput("--replay: an empty schedule; an example is w1w2w1w2")
    return tuple(moves)


def switches(moves: Sequence[Move]) -> int:
    """How often one thread follows another: what a reader has to follow."""
    return sum(1 for before, after in itertools.pairwise(moves) if before.thread != after.thread)
