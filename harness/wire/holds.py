"""Holds: where on the wire a session is made to stand still, what it stood at, and how it goes on.

A hold is armed on a proxy before the worker starts, is hit by one session (by each, with ``every``), and from then on that
session stands still until ``release`` or ``sever``. It keeps reading: a client that dies while held is seen at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from harness.history.recorder import DeadlinePassed
from harness.wire.known_jobs import KnownJobs

if TYPE_CHECKING:
    from harness.wire.session import Session

Ending = Literal["reset", "close"]


@dataclass(frozen=True)
class RequestView:
    """A statement about to reach the server. Until it is bound (a Parse alone) its parameters are unknown."""

    session: "Session"
    sql: str
    fingerprint: str
    changes: tuple[str, ...]
    keys: tuple[str, ...]
    jobs: tuple[str, ...]
    bound: bool
    known: KnownJobs

    def names(self, key: str) -> bool:
        """Whether the statement names this job, by its key or by its id."""
        return key in self.keys or any(self.known.key_of(job) == key for job in self.jobs)

    @property
    def key(self) -> str | None:
        """The first job that the statement names."""
        if self.keys:
            return self.keys[0]
        return self.known.key_of(self.jobs[0]) if self.jobs else None


@dataclass(frozen=True)
class NoticeView:
    """A row change that the truth trigger announced: provisional until the transaction ends."""

    session: "Session"
    seq: int
    xid: int
    change: str
    key: str | None
    job: str | None
    sql: str
    fingerprint: str


class Hold:
    """Common to all holds. ``session``, ``statement`` (its text) and ``key`` say what was hit last."""

    def __init__(self, what: str, sessions: Sequence["Session"], changed: Callable[[], None], *, every: bool) -> None:
        self._what = what
        self._sessions = sessions
        self._changed = changed
        self.every = every
        self.armed = True
        self.hit = asyncio.Event()
        self.session: Session | None = None
        self.statement = ""
        self.key: str | None = None

    async def reached(self, within_seconds: float) -> Self:
        """Wait until the hold is hit. Raises DeadlinePassed when it was not."""
        try:
            async with asyncio.timeout(within_seconds):
                await self.hit.wait()
        except TimeoutError:
            raise DeadlinePassed(f"waited {within_seconds:g} s for {self._what}") from None
        return self

    def release(self) -> None:
        """Let those who stand here go on. One that was not hit yet will not be; with ``every`` it stays armed."""
        self._open(armed=self.every)

    def disarm(self) -> None:
        """Let those who stand here go on, and hold nobody any more."""
        self._open(armed=False)

    def sever(self, ending: Ending = "reset") -> None:
        """Break both sides of each session that stands here. What was held is never delivered."""
        for session in tuple(self._sessions):
            if session.stands_at(self):
                session.sever("both", ending)
        self._open(armed=self.every)

    def _open(self, *, armed: bool) -> None:
        self.armed = armed
        if armed:
            self.hit.clear()
        for session in tuple(self._sessions):
            session.let_go(self)
        self._changed()

    def strike(self, session: "Session", statement: str, key: str | None) -> None:
        """The session stands here now. Called by the session only."""
        self.session, self.statement, self.key = session, statement, key
        self.armed = self.every
        self.hit.set()


class RequestHold(Hold):
    """Holds a client's message before the server sees it: from the first Query, Parse or Bind of a wanted statement."""

    def __init__(
        self,
        wanted: Callable[[RequestView], bool],
        sessions: Sequence["Session"],
        changed: Callable[[], None],
        *,
        every: bool,
    ) -> None:
        super().__init__("a wanted statement on its way to the server", sessions, changed, every=every)
        self.wanted = wanted


class NoticeHold(Hold):
    """Holds a session that has changed a wanted row and has not committed: whatever it sends next waits.

    It is hit when the server says that the transaction is open, or, in a pipeline, when the next message waits with no
    Sync before it. ``missed`` is set when the transaction had ended already: a single autocommit statement cannot be
    held here.
    """

    def __init__(
        self,
        wanted: Callable[[NoticeView], bool],
        sessions: Sequence["Session"],
        changed: Callable[[], None],
        *,
        every: bool,
    ) -> None:
        super().__init__("a wanted row change in an open transaction", sessions, changed, every=every)
        self.wanted = wanted
        self.missed = asyncio.Event()

    async def reached(self, within_seconds: float) -> Self:
        """Wait until the hold is hit. Raises DeadlinePassed when it was not, at once when it was missed."""
        waits = [asyncio.ensure_future(self.hit.wait()), asyncio.ensure_future(self.missed.wait())]
        try:
            await asyncio.wait(waits, timeout=within_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.hit.is_set():
            return self
        if self.missed.is_set():
            raise DeadlinePassed(f"no hold: {self._what} was waited for, but its transaction ended with the statement")
        raise DeadlinePassed(f"waited {within_seconds:g} s for {self._what}")

    def miss(self) -> None:
        """The transaction ended before anything could be held. Called by the session only."""
        self.armed = self.every
        self.missed.set()


class ReplyHold(Hold):
    """Withholds every reply from a candidate statement on, until it is known whether a wanted change became durable.

    If it did, the hold is hit and nothing more reaches the client; if not, all is delivered and the hold stays armed.
    """

    def __init__(
        self,
        wanted: Callable[[NoticeView], bool],
        candidate: Callable[[RequestView], bool],
        sessions: Sequence["Session"],
        changed: Callable[[], None],
        *,
        every: bool,
    ) -> None:
        super().__init__("a wanted row change to become durable", sessions, changed, every=every)
        self.wanted = wanted
        self.candidate = candidate
