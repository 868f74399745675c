"""One job of a play: its row's transitions, its grants, the calls made for it, and what the wire saw of each.

Transitions stand in truth's commit order (``seq``), everything else in the order of entry numbers (``n``).
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from harness.history.events import Asked, Attempted, Called, Enqueued, Final, Moved, Noticed, Row

ENDED = frozenset({"done", "dead", "paused", "reconcile", "deleted"})
"""States in which no worker runs a job again without an operator."""

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Seen(Generic[Kind]):
    """An event of one kind with its place and time."""

    n: int
    t: int
    what: Kind


@dataclass(slots=True)
class Notice:
    """A truth notice that passed the wire; ``settled`` is the entry after which its transaction had surely ended."""

    n: int
    session: int
    event: Noticed
    settled: int | None = None
    after: int = 0  # the last entry on its session before its transaction's first notice


@dataclass(slots=True)
class Transition:
    """One committed row transition, with what the wire knows of it. ``incarnation`` 0: not known."""

    n: int
    moved: Moved
    notice: Notice | None = None
    incarnation: int = 0

    @property
    def worker(self) -> int:
        return self.moved.worker

    @property
    def change(self) -> str:
        return self.moved.change

    @property
    def began(self) -> int:
        """The earliest entry at which it may have been seen by others: its notice, or else the entry that read it."""
        return self.notice.n if self.notice is not None else self.n

    @property
    def known_by(self) -> int:
        """An entry by which it was surely committed."""
        if self.notice is not None and self.notice.settled is not None:
            return self.notice.settled
        return self.n

    @property
    def with_token(self) -> str:
        """For a sentence: the row's token in brackets after a blank, or nothing where the queue has none."""
        row = self.moved.new
        return "" if row is None or row.token is None else f" (token {row.token})"

    def same_holder(self, other: "Transition") -> bool:
        """Whether both were made by one process, as far as is known."""
        if self.moved.worker != other.moved.worker:
            return False
        return self.incarnation == other.incarnation or not self.incarnation or not other.incarnation


@dataclass(slots=True)
class Call:
    """One request of a handler. ``grant`` is the index, in the job's grants, of the grant it was made under, -1 for none."""

    n: int
    t: int
    event: Called
    incarnation: int = 0
    applied: list[tuple[int, str]] = field(default_factory=list)
    answered: int | None = None
    status: int | None = None
    grant: int = -1

    @property
    def worker(self) -> int:
        return self.event.worker

    @property
    def refused(self) -> bool:
        """Whether a reply came that was not 2xx, or the connection broke."""
        return self.answered is not None and (self.status is None or not 200 <= self.status < 300)


@dataclass(slots=True)
class Attempt:
    """A statement that tried to change this job; ``moved`` says whether it moved the job's row."""

    n: int
    event: Attempted
    moved: bool


@dataclass(slots=True)
class Job:
    """One key of ours. ``transitions`` and ``grants`` stand in truth's commit order."""

    key: str
    enqueued: list[Seen[Enqueued]] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    grants: list[Transition] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of each grant, its index in ``transitions``
    calls: list[Call] = field(default_factory=list)
    asks: list[Seen[Asked]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    final: Seen[Final] | None = None
    notices: list[Notice] = field(default_factory=list)
    calm: bool = True  # at most one grant, and no worker but its holder ever wrote: most jobs, quickly judged
    reopened: list[int] = field(default_factory=list)  # places of transitions out of an ended state
    rolled_back: bool = False  # some notices of it have no transition (yet): read late, superseded, or rolled back

    @property
    def ours(self) -> bool:
        """Whether we enqueued it, by acknowledgement or by truth."""
        return bool(self.enqueued or self.transitions)

    def holder_before(self, place: int) -> Transition | None:
        """The latest grant before the transition at ``place``."""
        latest: Transition | None = None
        for grant, at in zip(self.grants, self.places, strict=True):
            if at >= place:
                break
            latest = grant
        return latest

    def span(self, grant: int) -> range:
        """Indices of the transitions from a grant (itself excluded) up to the next grant."""
        end = self.places[grant + 1] if grant + 1 < len(self.places) else len(self.transitions)
        return range(self.places[grant] + 1, end)

    def final_row(self) -> Row | None:
        """The row at the end: the final snapshot's, or else the last one that truth has."""
        if self.final is not None:
            return self.final.what.row
        return self.transitions[-1].moved.new if self.transitions else None
