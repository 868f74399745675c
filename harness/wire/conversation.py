"""What is said on one connection: which statement runs, what the server has still to answer, and what its answers mean.

Follows both directions message by message, records attempts, notices and settled transactions, and holds nothing back.
"""

import itertools
import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.history.events import Attempted, Noticed, SessionOpened, Settled
from harness.wire import framing
from harness.wire.framing import IDLE, end_of, word_at
from harness.wire.holds import NoticeView, RequestView
from harness.wire.known_jobs import NOTHING, Found, KnownJobs
from harness.wire.statements import StatementBook, fingerprint

if TYPE_CHECKING:
    from harness.wire.proxy import Proxy
    from harness.wire.session import Session

_MOST_PORTALS = 4096

# Frontend messages.
QUERY, PARSE, BIND, EXECUTE, SYNC, FLUSH = b"QPBESH"
CLOSE, FUNCTION, TERMINATE, COPY_DONE, COPY_FAIL = b"CFXcf"
# Backend messages.
READY, COMPLETE, ERROR, EMPTY, SUSPENDED, NOTICE, KEY, COPY_IN, COPY_BOTH, NOTIFICATION = b"ZCEIsNKGWA"

_COPY_ENDS = frozenset((COPY_DONE, COPY_FAIL))
_COPY_STARTS = frozenset((COPY_IN, COPY_BOTH))
_LISTEN = re.compile(rb"(?:\s|--[^\n]*\n|/\*.*?\*/)*listen\s", re.IGNORECASE | re.DOTALL)
_UNTAGGED = frozenset((EMPTY, SUSPENDED))


class Statement:
    """One SQL text. Its fingerprint is worked out when first asked for: most runs of most statements never ask."""

    __slots__ = (
        "_changes",
        "_fingerprint",
        "_found",
        "_found_version",
        "_text",
        "_version",
        "listens",
        "plain",
        "sql_bytes",
    )

    def __init__(self, sql: bytes) -> None:
        self.sql_bytes = sql
        self._text: str | None = None
        self._fingerprint: str | None = None
        self._changes: tuple[str, ...] = ()
        self._version = -1
        self._found = NOTHING
        self._found_version = -1
        self.plain = Running(self)
        self.listens = _LISTEN.match(sql) is not None

    @property
    def sql(self) -> str:
        if self._text is None:
            self._text = self.sql_bytes.decode("utf-8", "replace")
        return self._text

    @property
    def fingerprint(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.sql)
        return self._fingerprint

    def changes(self, book: StatementBook) -> tuple[str, ...]:
        if self._version != book.version:
            self._changes = () if book.empty else book.changes(self.fingerprint)
            self._version = book.version
        return self._changes

    def literals(self, known: KnownJobs) -> Found:
        if self._found_version != known.version:
            self._found = known.in_text(self.sql)
            self._found_version = known.version
        return self._found


class Running:
    """A statement with what its parameters name, on its way through the server."""

    __slots__ = ("found", "statement")

    def __init__(self, statement: Statement, found: Found = NOTHING) -> None:
        self.statement = statement
        self.found = found


# What the server still has to answer, in order: a Query (ends with ReadyForQuery), an Execute, a Sync. A COPY_END stands
# for a CopyDone or CopyFail that was sent before the server asked for data.
Awaited = tuple[str, Running]
_UNKNOWN = Running(Statement(b""))
_CALL = Running(Statement(b"function call"))
_SYNCED: Awaited = ("sync", _UNKNOWN)
_COPY_END: Awaited = ("copy end", _UNKNOWN)


class Conversation:
    """The state of one session's protocol. ``status`` is the byte of the last ReadyForQuery, 0 before the first."""

    def __init__(self, session: "Session", proxy: "Proxy") -> None:
        self._session = session
        self._proxy = proxy
        self.status = 0
        self.transactions_ended = 0  # tells one open transaction from the next
        self.terminated = False  # the client said goodbye
        self.listens = False  # it has asked for notifications
        self._statements: dict[bytes, Statement] = {}
        self._portals: dict[bytes, Running] = {}
        self._awaited: deque[Awaited] = deque()
        self._skipping = False  # the server ignores everything until a Sync
        self._copying_in = False
        self._moved = 0  # notices within the statement that runs
        self._tags: list[bytes] = []  # of the Query that runs
        self._sqlstate: str | None = None
        self._last = _UNKNOWN
        self._unsettled = False
        self._last_tag = b""  # since the last ReadyForQuery
        self._failed = False

    @property
    def running(self) -> "Running | None":
        """What the server is answering."""
        head = self._head()
        return head[1] if head else None

    @property
    def will_be_ready(self) -> bool:
        """Whether the server will say ReadyForQuery without anything more from the client."""
        return any(kind in {"query", "sync"} for kind, _ in self._awaited)

    @property
    def quiet(self) -> bool:
        """Whether the server has answered everything."""
        return not self._awaited

    # ---------------------------------------------------------------- the short cut

    def sent_plainly(self, chunk: bytes) -> bool:
        """Note a chunk that is one Query, seen before and of interest to nobody. False: it must be read as usual."""
        proxy = self._proxy
        plain = proxy.plain.get(chunk)
        if (
            plain is None
            or self._skipping
            or proxy.learning
            or proxy.armed
            or plain[1].statement.changes(proxy.book)
            or not self._session.front.aligned
        ):
            return False
        self.listens = self.listens or plain[1].statement.listens
        self._awaited.append(plain)
        return True

    def answered_plainly(self, data: bytes, marks: Sequence[int]) -> bool:
        """Note the end of a Query that interests nobody, with nothing pending. False: it must be read as usual."""
        if len(marks) != 2 or data[marks[1]] != READY or data[marks[0]] != COMPLETE:
            return False
        awaited = self._awaited
        if (
            not awaited
            or not self.status
            or self._unsettled
            or self._tags
            or self._sqlstate
            or self._moved
            or self._session.involved
        ):
            return False
        kind, running = awaited[0]
        if kind != "query" or running.statement.changes(self._proxy.book):
            return False
        self._last = running
        self.status = status = data[end_of(data, marks[1]) - 1]
        if status == IDLE:
            self.transactions_ended += 1
        awaited.popleft()
        return True

    # ---------------------------------------------------------------- what the client says

    def view(self, message: bytes) -> RequestView | None:
        """The statement in a Query, Parse or Bind that has not been sent yet; None for any other message."""
        kind = message[0]
        if kind == QUERY:
            return self.seen(self._queried(message, 0))
        if kind == BIND:
            return self.seen(self._bound(message, 0)[1])
        if kind == PARSE:
            return self.seen(self._parsed(message, 0).plain, bound=False)
        return None

    def seen(self, running: Running, *, bound: bool = True) -> RequestView:
        statement, proxy = running.statement, self._proxy
        changes = statement.changes(proxy.book)
        keys, jobs = running.found
        return RequestView(
            self._session, statement.sql, statement.fingerprint, changes, keys, jobs, bound=bound, known=proxy.known
        )

    def sent(self, data: bytes, at: int) -> None:
        """A whole message goes to the server: keep in mind what it will answer."""
        kind = data[at]
        if kind == QUERY:
            if not self._skipping:
                running = self._queried(data, at)
                asked: Awaited = ("query", running)
                self._awaited.append(asked)
                if at == 0 and running is running.statement.plain and end_of(data, 0) == len(data):
                    self._proxy.remember(data, asked)
        elif kind == SYNC:
            self._skipping = False
            if not self._copying_in:  # the server ignores a Sync while it takes data
                self._awaited.append(_SYNCED)
        elif kind == PARSE:
            self._parsed(data, at)
        elif kind == BIND:
            name, running = self._bound(data, at)
            self._portals[name] = running
            if len(self._portals) > _MOST_PORTALS:
                del self._portals[next(iter(self._portals))]
        elif kind == EXECUTE:
            if not self._skipping:
                self._awaited.append(("execute", self._portals.get(word_at(data, at + 5), _UNKNOWN)))
        elif kind == CLOSE:
            named = self._statements if data[at + 5 : at + 6] == b"S" else self._portals
            named.pop(word_at(data, at + 6), None)
        elif kind in _COPY_ENDS:
            if self._copying_in:
                self._copying_in = False
            else:
                self._awaited.append(_COPY_END)
        elif kind == FUNCTION:
            if not self._skipping:
                self._awaited.append(("query", _CALL))
        elif kind == TERMINATE:
            self.terminated = True

    def _parsed(self, data: bytes, at: int) -> Statement:
        name = word_at(data, at + 5)
        statement = self._proxy.statement(word_at(data, at + 6 + len(name)))
        self._statements[name] = statement
        self.listens = self.listens or statement.listens
        return statement

    def _bound(self, data: bytes, at: int) -> tuple[bytes, Running]:
        name = word_at(data, at + 5)
        statement = self._statements.get(word_at(data, at + 6 + len(name)), _UNKNOWN.statement)
        if not self._interested(statement):
            return name, statement.plain
        found = self._proxy.known.in_bind(data[at + 5 : end_of(data, at)])
        return name, Running(statement, statement.literals(self._proxy.known) if found is None else found)

    def _queried(self, data: bytes, at: int) -> Running:
        statement = self._proxy.statement(data[at + 5 : end_of(data, at) - 1])
        self.listens = self.listens or statement.listens
        if not self._interested(statement):
            return statement.plain
        return Running(statement, statement.literals(self._proxy.known))

    def _interested(self, statement: Statement) -> bool:
        proxy = self._proxy
        return proxy.learning or proxy.armed or bool(statement.changes(proxy.book))

    # ---------------------------------------------------------------- what the server says

    def _head(self) -> Awaited | None:
        """The statement that the server is answering, or None."""
        awaited = self._awaited
        while awaited and awaited[0] is _COPY_END:
            awaited.popleft()
        return awaited[0] if awaited and awaited[0] is not _SYNCED else None

    def answered(self, data: bytes, at: int) -> bool:
        """A whole message came from the server: record what it says. True when it is ours and not for the client."""
        kind = data[at]
        if kind == COMPLETE:
            self._completed(data[at + 5 : end_of(data, at) - 1])
        elif kind == READY:
            self._is_ready(data[end_of(data, at) - 1])
        elif kind in _UNTAGGED:
            self._completed(b"")
        elif kind == NOTICE:
            said = framing.announcement(data[at + 4 : end_of(data, at)])
            if said is not None:
                self._announced(said)
                return True
        elif kind == NOTIFICATION and self._proxy.loses_notifications:
            self._proxy.notifications_lost += 1
            return True
        elif kind == ERROR:
            self._has_failed(framing.sqlstate(data[at + 5 : end_of(data, at)]))
        elif kind == KEY and end_of(data, at) >= at + 9:
            self._session.pid = framing.int_at(data, at + 5)
        elif kind in _COPY_STARTS:
            self._takes_data()
        return False

    def _is_ready(self, status: int) -> None:
        session = self._session
        first, self.status = not self.status, status
        if status == IDLE:
            self.transactions_ended += 1
        if first:
            self._proxy.opened += 1
            self._proxy.recorder.record(SessionOpened(session.id, session.worker, session.pid, session.app))
            return
        awaited = self._awaited
        while awaited:
            kind, running = awaited.popleft()
            if kind == "query":
                self._finish(running, b"; ".join(self._tags), self._sqlstate)
                self._tags.clear()
                self._sqlstate = None
                break
            if kind == "sync":
                break
        if status == IDLE and self._unsettled:
            self._unsettled = False
            self._proxy.recorder.record(Settled(session.id, session.worker, session.pid))
        kept = not self._failed and self._last_tag != b"ROLLBACK"
        self._failed = False
        self._last_tag = b""
        session.is_ready(status, kept=kept)

    def last_words(self) -> None:
        """The connection has ended: an error that came instead of an answer was the answer."""
        running = self.running
        if self._sqlstate is not None and running is not None:
            self._finish(running, b"; ".join(self._tags), self._sqlstate)

    def _completed(self, tag: bytes) -> None:
        self._last_tag = tag
        if tag == b"COMMIT":
            self._session.has_committed()
        head = self._head()
        if head is None:
            return
        kind, running = head
        if kind == "query":
            self._tags.append(tag)
        else:
            self._awaited.popleft()
            self._finish(running, tag, None)

    def _has_failed(self, sqlstate: str) -> None:
        self._failed = True
        self._copying_in = False
        head = self._head()
        if head is not None and head[0] == "query":
            self._sqlstate = sqlstate
            return
        if head is not None:
            self._finish(head[1], b"", sqlstate)
        while self._awaited and self._awaited[0] is not _SYNCED:
            self._awaited.popleft()
        self._skipping = not self._awaited and bool(self.status)

    def _takes_data(self) -> None:
        """The server wants COPY data. A Sync that it meets before the data's end is ignored and never answered."""
        awaited = self._awaited
        if self._head() is None:
            return
        first, rest = awaited[0], deque(itertools.islice(awaited, 1, None))
        while rest and rest[0] is _SYNCED:
            rest.popleft()
        if rest and rest[0] is _COPY_END:
            rest.popleft()
        else:
            self._copying_in = True
        self._awaited = deque([first, *rest])

    def _finish(self, running: Running, tag: bytes, sqlstate: str | None) -> None:
        self._last = running
        statement = running.statement
        moved, self._moved = self._moved, 0
        changes = statement.changes(self._proxy.book)
        if not changes:
            return
        self._unsettled = True
        if self._proxy.learning and not moved and "claim" in changes:
            self._proxy.book.shows_idle_looks = True
        session = self._session
        said = (session.id, session.worker, session.pid, changes, statement.fingerprint)
        self._proxy.recorder.record(Attempted(*said, moved, tag.decode("utf-8", "replace"), sqlstate, *running.found))

    def _announced(self, said: framing.Announcement) -> None:
        session, proxy = self._session, self._proxy
        statement = (self.running or self._last).statement
        text = statement.fingerprint
        if proxy.learning:
            proxy.book.learn(text, said.change, said.place or 1)
        self._moved += 1
        self._unsettled = True
        proxy.recorder.record(
            Noticed(
                session.id,
                session.worker,
                session.pid,
                said.xid,
                said.seq,
                said.change,
                said.key,
                text,
                said.place or 1,
            )
        )
        if proxy.armed:
            session.has_noticed(
                NoticeView(session, said.seq, said.xid, said.change, said.key, said.job, statement.sql, text)
            )
