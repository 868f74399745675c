"""One play, folded in one pass into what judging asks for: per job its grants, transitions and calls; per worker its lives.

A story only arranges what the history says; it judges nothing. Two orders meet here and are never mixed: transitions of one
job stand in truth's commit order (``seq``), everything else in the order of entry numbers (``n``). A transition's own entry
is written when truth was *read*, so its place among the other entries is known only from its notice on the wire (before
the commit) and from the session's next ReadyForQuery (after it).
"""

import gc
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.history.events import (
    Answered,
    AnyEvent,
    Applied,
    Asked,
    Attempted,
    BackendEnded,
    Began,
    Blocked,
    Called,
    Ended,
    Enqueued,
    Entry,
    FaultHealed,
    FaultLanded,
    Final,
    Inconsistent,
    LeftOut,
    Moved,
    Noticed,
    OpenTransaction,
    Reached,
    Released,
    Saw,
    SessionClosed,
    SessionOpened,
    Settled,
    Signalled,
    Stalled,
    SubjectFacts,
    TruthIncomplete,
    Waited,
    WorkerExited,
    WorkerStarted,
)
from harness.history.job import ENDED, Attempt, Call, Job, Notice, Seen, Transition
from harness.history.worker import Incarnation, Session, Worker

NOBODY = SubjectFacts(
    name="?", guarantee="at-least-once", order="none", sink="naive", recovery="repeat", restarts="never"
)


class Story:
    """One play. ``add`` folds one entry; what is asked of a job is linked when it is asked for, so a story can be
    questioned while it is still being told.
    """

    def __init__(self, play: str = "") -> None:
        self.play = play
        self.entries: list[Entry] = []
        self.began: Began | None = None
        self.ended: Ended | None = None
        self.subject: SubjectFacts = NOBODY
        self.workers: dict[int, Worker] = {}
        self.sessions: dict[int, Session] = {}
        self.calls: dict[int, Call] = {}
        self.strangers: list[Transition] = []  # of rows whose keys are not ours
        self.claim_statements: set[str] = set()
        self.reached: list[Seen[Reached]] = []
        self.released: list[Seen[Released]] = []
        self.faults: list[Seen[FaultLanded]] = []
        self.healed: list[Seen[FaultHealed]] = []
        self.backends_ended: list[Seen[BackendEnded]] = []
        self.blocked: list[Seen[Blocked]] = []
        self.open_transactions: list[Seen[OpenTransaction]] = []
        self.saws: list[Seen[Saw]] = []
        self.left_out: list[Seen[LeftOut]] = []
        self.waits: list[Seen[Waited]] = []
        self.stalls: list[Seen[Stalled]] = []
        self.inconsistencies: list[Seen[Inconsistent]] = []
        self.incomplete: list[Seen[TruthIncomplete]] = []
        self._jobs: dict[str, Job] = {}
        self._notices: dict[int, Notice] = {}
        self._keys_of_jobs: dict[str, str] = {}
        self._pids: dict[int, Session] = {}
        self.unnamed: list[Attempt] = []  # attempts that name no job of ours, as far as is known
        self._by_id: list[tuple[int, Attempted, tuple[str | None, ...]]] = []
        self._unlinked: set[str] = set()

    @classmethod
    def of(cls, entries: Iterable[Entry], play: str = "") -> "Story":
        """The story of entries that all belong to one play."""
        story = cls(play)
        for entry in entries:
            story.add(entry)
        return story

    def add(self, entry: Entry) -> None:
        """Fold one more entry, in the order of ``n``."""
        self.entries.append(entry)
        what = entry.what
        handler = _HANDLERS.get(type(what))
        if handler is not None:
            handler(self, entry, what)
        else:
            kept: list[Any] = getattr(self, _KEPT[type(what)])
            kept.append(Seen(entry.n, entry.t, what))

    @property
    def jobs(self) -> dict[str, Job]:
        """The jobs by key, linked: grants known, calls tied to grants, notices to transitions."""
        if self._by_id:
            self._resolve_ids()
        if self._unlinked:
            for key in self._unlinked:
                self._link(self._jobs[key])
            self._unlinked.clear()
        return self._jobs

    def job(self, key: str) -> Job | None:
        """One job, linked."""
        return self.jobs.get(key)

    def entry(self, n: int) -> Entry | None:
        """The entry with this number, if it belongs to this play."""
        at = bisect_left(self.entries, n, key=lambda entry: entry.n)
        return self.entries[at] if at < len(self.entries) and self.entries[at].n == n else None

    def what(self, n: int) -> AnyEvent | None:
        """The event with this number, if it belongs to this play."""
        entry = self.entry(n)
        return entry.what if entry is not None else None

    def t(self, n: int) -> int:
        """When the entry with this number was recorded, nanoseconds on the harness's clock."""
        entry = self.entry(n)
        return entry.t if entry is not None else 0

    def happened_at(self, entry: Entry) -> int:
        """When what an entry tells of happened, as near as is known. A transition is read late; the wire knew of it before."""
        notice = self._notices.get(entry.what.seq) if isinstance(entry.what, Moved) else None
        if notice is None or notice.settled is None:
            return entry.t
        return min(entry.t, self.t(notice.settled))

    def clock(self, n: int) -> str:
        """When an entry was recorded, in seconds since the play began, for a sentence."""
        return f"{(self.t(n) - (self.entries[0].t if self.entries else 0)) / 1e9:.3f} s"

    def worker(self, number: int) -> Worker:
        """A worker by number; one that the history never mentions has no lives."""
        worker = self.workers.get(number)
        if worker is None:
            worker = self.workers[number] = Worker(number)
        return worker

    def unread_claim(self, job: Job) -> bool:
        """Whether a claim of this job passed the wire and ended, yet truth has not shown it (so far, or ever)."""
        if not job.rolled_back:
            return False
        seen = {transition.moved.xid for transition in job.transitions}
        return any(n.event.change == "claim" and n.event.xid not in seen for n in job.notices)

    # One handler per kind of event, the most frequent first.

    def _job_of(self, key: str) -> Job:
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = Job(key)
        self._unlinked.add(key)
        return job

    def _moved(self, entry: Entry, moved: Moved) -> None:
        transition = Transition(entry.n, moved)
        if not moved.ours or moved.key is None:
            self.strangers.append(transition)
            return
        self._keys_of_jobs[moved.job] = moved.key
        self._job_of(moved.key).transitions.append(transition)

    def _noticed(self, entry: Entry, noticed: Noticed) -> None:
        notice = Notice(entry.n, noticed.session, noticed)
        self._notices[noticed.seq] = notice
        if noticed.change == "claim":
            self.claim_statements.add(noticed.statement)
        session = self.sessions.get(noticed.session)
        if session is None:
            session = self._new_session(entry.n, noticed.session, noticed.worker, noticed.pid)
        if not session.open_notices:
            session.after = session.last
        notice.after = session.after
        session.last = entry.n
        session.open_notices.append(notice)
        session.since_attempt.append(noticed.key)
        if noticed.key is not None:
            job = self._jobs.get(noticed.key)
            if job is None:  # a claim may pass the wire before its enqueue is acknowledged
                job = self._jobs[noticed.key] = Job(noticed.key)
            job.notices.append(notice)

    def _settled(self, entry: Entry, settled: Settled) -> None:
        session = self.sessions.get(settled.session)
        if session is not None:
            session.last = entry.n
            for notice in session.open_notices:
                notice.settled = entry.n
            session.open_notices = []

    def _attempted(self, entry: Entry, attempted: Attempted) -> None:
        session = self.sessions.get(attempted.session)
        touched: tuple[str | None, ...] = ()
        if session is not None:
            session.last = entry.n
            if session.since_attempt:
                touched = tuple(session.since_attempt)
                session.since_attempt = []
        if "claim" in attempted.changes:
            self.claim_statements.add(attempted.statement)
        if attempted.keys:
            for key in attempted.keys:
                self._job_of(key).attempts.append(Attempt(entry.n, attempted, key in touched))
        elif attempted.jobs:
            self._by_id.append((entry.n, attempted, touched))
        else:
            self.unnamed.append(Attempt(entry.n, attempted, attempted.moved > 0))

    def _called(self, entry: Entry, called: Called) -> None:
        incarnation = self.worker(called.worker).incarnation_at(entry.n)
        call = Call(entry.n, entry.t, called, incarnation.number if incarnation is not None else 0)
        self.calls[called.call] = call
        self._job_of(called.key).calls.append(call)

    def _applied(self, entry: Entry, applied: Applied) -> None:
        call = self.calls.get(applied.call)
        if call is not None:
            call.applied.append((entry.n, applied.outcome))

    def _answered(self, entry: Entry, answered: Answered) -> None:
        call = self.calls.get(answered.call)
        if call is not None:
            call.answered = entry.n
            call.status = answered.status

    def _enqueued(self, entry: Entry, enqueued: Enqueued) -> None:
        self._job_of(enqueued.key).enqueued.append(Seen(entry.n, entry.t, enqueued))

    def _final(self, entry: Entry, final: Final) -> None:
        self._job_of(final.key).final = Seen(entry.n, entry.t, final)

    def _asked(self, entry: Entry, asked: Asked) -> None:
        self._job_of(asked.key).asks.append(Seen(entry.n, entry.t, asked))

    def _new_session(self, n: int, number: int, worker_number: int, pid: int) -> Session:
        worker = self.worker(worker_number)
        incarnation = worker.incarnation_at(n)
        session = Session(number, worker_number, pid, incarnation.number if incarnation is not None else 0, n, last=n)
        self.sessions[number] = session
        self._pids[pid] = session
        worker.sessions.append(session)
        return session

    def _session_opened(self, entry: Entry, opened: SessionOpened) -> None:
        self._new_session(entry.n, opened.session, opened.worker, opened.pid)

    def _session_closed(self, entry: Entry, closed: SessionClosed) -> None:
        session = self.sessions.get(closed.session)
        if session is not None:
            session.closed, session.closed_by = entry.n, closed.by

    def _worker_started(self, entry: Entry, started: WorkerStarted) -> None:
        self.worker(started.worker).incarnations.append(
            Incarnation(started.worker, started.incarnation, started.pid, entry.n, entry.t)
        )

    def _worker_exited(self, entry: Entry, exited: WorkerExited) -> None:
        for incarnation in self.worker(exited.worker).incarnations:
            if incarnation.number == exited.incarnation:
                incarnation.exited, incarnation.code = entry.n, exited.code

    def _signalled(self, entry: Entry, signalled: Signalled) -> None:
        worker = self.worker(signalled.worker)
        worker.signals.append(Seen(entry.n, entry.t, signalled))
        incarnation = worker.incarnation_at(entry.n)
        if signalled.signal == "SIGKILL" and incarnation is not None and incarnation.died is None:
            incarnation.killed = entry.n

    def _began(self, _: Entry, began: Began) -> None:
        self.began = began
        self.subject = began.subject

    def _ended(self, _: Entry, ended: Ended) -> None:
        self.ended = ended

    # Linking: what can only be said once the entries around it are known.

    def _resolve_ids(self) -> None:
        unknown: list[tuple[int, Attempted, tuple[str | None, ...]]] = []
        for n, attempted, touched in self._by_id:
            keys = {self._keys_of_jobs[job] for job in attempted.jobs if job in self._keys_of_jobs}
            if not keys:
                unknown.append((n, attempted, touched))
            for key in sorted(keys):
                job = self._job_of(key)
                job.attempts.append(Attempt(n, attempted, key in touched))
                job.attempts.sort(key=lambda attempt: attempt.n)
        self._by_id = unknown

    def _link(self, job: Job) -> None:
        transitions = job.transitions
        if len(transitions) > 1:
            transitions.sort(key=_seq)
        grants: list[Transition] = []
        places: list[int] = []
        reopened: list[int] = []
        writer = noticed = 0
        calm = True
        for place, transition in enumerate(transitions):
            moved = transition.moved
            notice = transition.notice
            if notice is None:
                notice = transition.notice = self._notices.get(moved.seq)
            if notice is not None:
                noticed += 1
            if not transition.incarnation:
                session = self.sessions.get(notice.session) if notice is not None else self._pids.get(moved.pid)
                if session is not None and session.worker == moved.worker:
                    transition.incarnation = session.incarnation
            if moved.change == "claim":
                grants.append(transition)
                places.append(place)
            if moved.worker != writer and moved.change != "enqueue":
                calm = calm and not writer
                writer = moved.worker
            if moved.old is not None and moved.old.state in ENDED:
                reopened.append(place)
        job.grants = grants
        job.places = places
        job.calm = calm and len(grants) < 2
        job.reopened = reopened
        job.rolled_back = noticed < len(job.notices)
        for call in job.calls:
            call.grant = _grant_of(job, call)


# Tables of the class, not of each story: bound methods would make every story a cycle.
_HANDLERS: dict[type, Callable[[Story, Entry, Any], None]] = {
    Moved: Story._moved,
    Noticed: Story._noticed,
    Settled: Story._settled,
    Attempted: Story._attempted,
    Called: Story._called,
    Applied: Story._applied,
    Answered: Story._answered,
    Enqueued: Story._enqueued,
    Final: Story._final,
    Asked: Story._asked,
    SessionOpened: Story._session_opened,
    SessionClosed: Story._session_closed,
    WorkerStarted: Story._worker_started,
    WorkerExited: Story._worker_exited,
    Signalled: Story._signalled,
    Began: Story._began,
    Ended: Story._ended,
}
_KEPT: dict[type, str] = {
    FaultLanded: "faults",
    FaultHealed: "healed",
    Reached: "reached",
    Released: "released",
    BackendEnded: "backends_ended",
    Blocked: "blocked",
    OpenTransaction: "open_transactions",
    Saw: "saws",
    LeftOut: "left_out",
    Waited: "waits",
    Stalled: "stalls",
    Inconsistent: "inconsistencies",
    TruthIncomplete: "incomplete",
}


def _seq(transition: Transition) -> int:
    return transition.moved.seq


def _grant_of(job: Job, call: Call) -> int:
    """The grant that a call was made under: the caller's latest that was surely committed, else its latest begun; -1: none."""
    sure = begun = -1
    worker, n = call.event.worker, call.n
    for index, grant in enumerate(job.grants):
        if grant.moved.worker != worker:
            continue
        if grant.known_by < n:
            sure = index
        elif grant.notice is None or grant.notice.n < n:
            begun = index
    return sure if sure >= 0 else begun


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Reading and judging make many small objects and no cycles; collecting in between costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def stories(entries: Iterable[Entry]) -> dict[str, Story]:
    """Split a history by play, in the order in which the plays began."""
    told: dict[str, Story] = {}
    play: str | None = None
    add: Callable[[Entry], None]
    with without_garbage_collection():
        for entry in entries:
            if entry.play != play:
                play = entry.play
                story = told.get(play)
                if story is None:
                    story = told[play] = Story(play)
                add = story.add
            add(entry)
    return told
