"""One worker of a play: the processes it lived as, and its connections."""

from dataclasses import dataclass, field

from harness.history.events import Signalled
from harness.history.job import Notice, Seen


@dataclass(slots=True)
class Incarnation:
    """One process of a worker, from its start to its death. ``killed`` is the SIGKILL, ``exited`` the observed end."""

    worker: int
    number: int
    pid: int
    started: int
    started_t: int
    killed: int | None = None
    exited: int | None = None
    code: int | None = None

    @property
    def died(self) -> int | None:
        """The first entry that shows its death."""
        if self.killed is not None:
            return self.killed
        return self.exited

    @property
    def fell(self) -> int | None:
        """Its death within the story: by a recorded SIGKILL or of itself. The closing of a play kills without a record."""
        return self.exited if self.killed is None and self.code != -9 else self.killed


@dataclass(slots=True)
class Worker:
    """Everything about one worker's number."""

    number: int
    incarnations: list[Incarnation] = field(default_factory=list)
    signals: list[Seen[Signalled]] = field(default_factory=list)
    sessions: list["Session"] = field(default_factory=list)

    def incarnation_at(self, n: int) -> Incarnation | None:
        """The process that lived, or had lived last, at entry ``n``."""
        found = None
        for incarnation in self.incarnations:
            if incarnation.started > n:
                break
            found = incarnation
        return found

    def alive_at(self, n: int) -> bool:
        """Whether its process was alive at entry ``n``; true when the history says nothing of its processes."""
        if not self.incarnations:
            return True
        incarnation = self.incarnation_at(n)
        return incarnation is not None and (incarnation.died is None or incarnation.died > n)


@dataclass(slots=True)
class Session:
    """One wire connection."""

    number: int
    worker: int
    pid: int
    incarnation: int
    opened: int
    closed: int | None = None
    closed_by: str = ""
    last: int = 0
    after: int = 0
    open_notices: list[Notice] = field(default_factory=list)
    since_attempt: list[str | None] = field(default_factory=list)
