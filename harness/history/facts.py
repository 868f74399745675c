"""What must have happened, or a scenario proves nothing: sentences, and the entries of a story that show them true.

A fact is named by its sentence, so that a stored history, which holds only sentences, can be judged again: ``fact_named``
leads back from a sentence to its fact. A fact with a parameter has the parameter in its sentence.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from harness.contracts.fact import Fact
from harness.contracts.point import Point
from harness.history.events import (
    Attempted,
    Blocked,
    FaultHealed,
    FaultLanded,
    Reached,
)
from harness.history.excuses import strikes_network, strikes_server
from harness.history.job import Job, Transition
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

StoryFact = Fact[Story]

_STANDS = {
    Point.CLAIM_SENT: "with its claim on the wire",
    Point.SNAPSHOT: "after its snapshot, before it locked a row",
    Point.CLAIMED: "while its rows were locked",
    Point.COMMITTING: "inside its commit",
    Point.COMMIT_LOST: "before it heard that its claim was committed",
    Point.CALLING: "after its commit, before its call had an effect",
    Point.CALLED: "after its call had an effect, before it was answered",
    Point.RESULT_SENT: "with its result on the wire",
    Point.RESULT_LOST: "before it heard that its result was committed",
    Point.RENEWING: "with its heartbeat on the wire",
}
NEARLY = 0.8  # of a declared lease: a queue may set aside some of it for itself
_RESULTS = frozenset({"complete", "fail", "release", "renew"})
_TAKES_AWAY = frozenset({"fail", "release", "retire"})  # when another than the holder makes it
_CLASSES = {"2xx": "done", "4xx": "a content failure", "5xx": "a system failure", "nothing": "a broken connection"}


# Takeovers.


def takeovers(story: Story, *, live: bool = False) -> Iterator[tuple[Job, int, Transition, Transition]]:
    """(job, index of the later grant, earlier grant, later grant) where the earlier holder had written no result.

    ``live``: only where both were made by different worker numbers.
    """
    for job in story.jobs.values():
        for index in range(1, len(job.grants)):
            earlier, later = job.grants[index - 1], job.grants[index]
            if earlier.same_holder(later) or (live and earlier.worker == later.worker):
                continue
            span = [job.transitions[place] for place in job.span(index - 1)]
            if any(t.same_holder(earlier) and t.change in {"complete", "fail", "release", "retire"} for t in span):
                continue
            yield job, index, earlier, later


def _taken_over(story: Story) -> tuple[int, ...]:
    for _, _, earlier, later in takeovers(story):
        return (earlier.n, later.n)
    return ()


taken_over: StoryFact = Fact("taken over", _taken_over)
"""A job was granted to another worker, or another process, while an earlier grant of it had not been ended by its holder."""


def _taken_over_by_another(story: Story) -> tuple[int, ...]:
    for _, _, earlier, later in takeovers(story, live=True):
        return (earlier.n, later.n)
    return ()


taken_over_by_another: StoryFact = Fact("taken over by another worker", _taken_over_by_another)


def _paused_past_lease(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for stop, resume in _pauses(story, worker.number):
            for job, index, earlier, later in takeovers(story):
                inside = stop < later.began and (resume is None or later.began < resume)
                over = lease_at(story, job, job.places[index]).lease is not Lease.EARLY
                if earlier.worker == worker.number and inside and over:
                    return (stop, later.n) if resume is None else (stop, later.n, resume)
            lease = story.subject.lease_seconds
            if resume is not None and lease is not None and (story.t(resume) - story.t(stop)) / 1e9 > lease:
                return (stop, resume)
    return ()


def _pauses(story: Story, worker: int) -> Iterator[tuple[int, int | None]]:
    stopped: int | None = None
    for entry in story.worker(worker).signals:
        signal = entry.what.signal
        if signal == "SIGSTOP":
            stopped = entry.n
        elif signal == "SIGCONT" and stopped is not None:
            yield stopped, entry.n
            stopped = None
    if stopped is not None:
        yield stopped, None


paused_past_lease: StoryFact = Fact("paused past its lease", _paused_past_lease)


def _leased_as_declared(story: Story) -> tuple[int, ...]:
    """A grant with a lease as long as the play's, or nearly so: the worker heeds what it is told."""
    for job in story.jobs.values():
        for grant in job.grants:
            row = grant.moved.new
            if row is None or row.lease_us is None or story.subject.lease_seconds is None:
                continue
            if row.lease_us - grant.moved.transaction_us >= story.subject.lease_seconds * 1e6 * NEARLY:
                return (grant.n,)
    return ()


leased_as_declared: StoryFact = Fact("granted for as long as the lease is declared to be", _leased_as_declared)


def _resumed(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for stop, resume in _pauses(story, worker.number):
            if resume is not None and worker.alive_at(resume):
                return (stop, resume)
    return ()


resumed: StoryFact = Fact("resumed after its pause", _resumed)


def _network_cut_past_lease(story: Story) -> tuple[int, ...]:
    for entry in story.faults:
        fault = entry.what
        if not strikes_network(fault):
            continue
        healed = next((h for h in story.healed if h.n > entry.n and _heals(h.what, fault)), None)
        lease = story.subject.lease_seconds
        if healed is not None and lease is not None and (healed.t - entry.t) / 1e9 > lease:
            return (entry.n, healed.n)
        for _, _, earlier, later in takeovers(story):
            if earlier.worker == fault.worker and entry.n < later.began and (healed is None or later.began < healed.n):
                return (entry.n, later.n)
    return ()


def _heals(event: FaultHealed, fault: FaultLanded) -> bool:
    return event.fault == fault.fault and event.worker == fault.worker


network_cut_past_lease: StoryFact = Fact("cut off the network past its lease", _network_cut_past_lease)


# Points and kills.


@cache
def reached(point: Point) -> StoryFact:
    """A worker stood at a point, by the server's or the sink's word."""

    def evidence(story: Story) -> tuple[int, ...]:
        return next(((entry.n,) for entry in story.reached if _at(entry.what, point)), ())

    return Fact(f"a worker stood at {point}", evidence)


def _at(stood: Reached, point: Point) -> bool:
    # A claim that is one autocommit statement stands at both of these at once.
    twins = {Point.CLAIMED, Point.COMMITTING}
    wanted = twins if point in twins else {point}
    return stood.point in wanted


def _kills(story: Story) -> Iterator[tuple[int, int]]:
    for worker in story.workers.values():
        for entry in worker.signals:
            if entry.what.signal == "SIGKILL":
                yield worker.number, entry.n


@cache
def killed_at(point: Point) -> StoryFact:
    """A worker got SIGKILL while it stood at a point: reached before, not released in between."""

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.reached:
            if not _at(entry.what, point):
                continue
            worker = entry.what.worker
            for killed, n in _kills(story):
                freed = any(r.what.worker == worker and entry.n < r.n < n for r in story.released)
                if killed == worker and n > entry.n and not freed:
                    return (entry.n, n)
        return ()

    return Fact(f"killed {_STANDS[point]}", evidence)


@cache
def paused_at(point: Point) -> StoryFact:
    """A worker got SIGSTOP while it stood at a point."""

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.reached:
            if not _at(entry.what, point):
                continue
            worker = entry.what.worker
            for stop, _ in _pauses(story, worker):
                if stop > entry.n:
                    return (entry.n, stop)
        return ()

    return Fact(f"paused {_STANDS[point]}", evidence)


def _backend_ended_before_commit(story: Story) -> tuple[int, ...]:
    for entry in story.backends_ended:
        ended = entry.what
        for job in story.jobs.values():
            committed = {t.moved.xid for t in job.transitions}
            for notice in job.notices:
                mine = notice.event.worker == ended.worker and notice.event.pid == ended.pid
                if mine and notice.n < entry.n and notice.event.xid not in committed:
                    return (notice.n, entry.n)
        for stand in story.reached:
            stood = stand.what
            if stood.worker != ended.worker or stood.pid != ended.pid:
                continue
            before_commit = stood.point in {Point.CLAIMED, Point.COMMITTING, Point.SNAPSHOT, Point.CLAIM_SENT}
            committed_by_it = any(
                t.moved.pid == ended.pid and t.change == "claim" for job in story.jobs.values() for t in job.transitions
            )
            if before_commit and stand.n < entry.n and not committed_by_it:
                return (stand.n, entry.n)
    return ()


backend_ended_before_commit: StoryFact = Fact("its backend ended before the commit", _backend_ended_before_commit)
"""What it had locked or changed was rolled back: a notice or a stand of that backend, its end, and no row of it in truth."""


def _orphan_committed(story: Story) -> tuple[int, ...]:
    for worker, killed in _kills(story):
        for job in story.jobs.values():
            for grant in job.grants:
                if grant.worker == worker and _open_at(story, grant, killed):
                    return (killed, grant.n)
    return ()


def _open_at(story: Story, grant: Transition, n: int) -> bool:
    """Whether a grant's transaction was still open at entry ``n``, by the wire or by a stand before its commit."""
    for entry in story.reached:
        stood = entry.what
        if stood.pid != grant.moved.pid or entry.n > n:
            continue
        if stood.point in {Point.CLAIM_SENT, Point.SNAPSHOT, Point.CLAIMED, Point.COMMITTING} and grant.n > n:
            freed = any(r.what.worker == stood.worker and entry.n < r.n < n for r in story.released)
            if not freed:
                return True
    return False


orphan_committed: StoryFact = Fact("its claim was committed after its death", _orphan_committed)


@cache
def reply_lost(change: str) -> StoryFact:
    """A committed change whose reply never came: ``change`` is "claim" or "result"."""
    point = {"claim": Point.COMMIT_LOST, "result": Point.RESULT_LOST}[change]
    changes = {"claim"} if change == "claim" else {"complete", "fail", "release"}

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.reached:
            stood = entry.what
            if stood.point != point:
                continue
            for job in story.jobs.values():
                for t in job.transitions:
                    if t.worker == stood.worker and t.change in changes and stood.pid in {0, t.moved.pid}:
                        return tuple(sorted((entry.n, t.n)))
        return ()

    return Fact(f"the reply to a committed {change} was lost", evidence)


# Late writes and calls.


def _late(story: Story, changes: frozenset[str]) -> tuple[int, ...]:
    for job, index, earlier, later in takeovers(story, live=True):
        for attempt in [*job.attempts, *story.unnamed]:
            event = attempt.event
            tried = event.worker == earlier.worker and changes & set(event.changes)
            if tried and not attempt.moved and attempt.n > later.began:
                return (later.n, attempt.n)
        if _accepted_late(job, index, earlier, changes):
            continue
        abstained = _abstained(story, job, earlier, later, changes)
        if abstained:
            return (later.n, *abstained)
    return ()


def _accepted_late(job: Job, index: int, earlier: Transition, changes: frozenset[str]) -> bool:
    rest = job.transitions[job.places[index] + 1 :]
    return any(t.same_holder(earlier) and t.change in changes for t in rest)


def _abstained(
    story: Story, job: Job, earlier: Transition, later: Transition, changes: frozenset[str]
) -> tuple[int, ...]:
    """Entries that show the earlier holder alive and free to write after the takeover, and that it wrote nothing."""
    worker = story.worker(earlier.worker)
    tried = [
        attempt.n
        for attempt in [*job.attempts, *story.unnamed]
        if attempt.event.worker == worker.number and changes & set(attempt.event.changes) and attempt.n > later.began
    ]
    if tried:
        return ()
    gave_up = [entry.n for entry in story.saws if entry.what.what == GAVE_UP and entry.what.worker == worker.number]
    if any(n > later.began for n in gave_up):
        return (next(n for n in gave_up if n > later.began),)
    freed = [
        *(entry.n for entry in story.released if entry.what.worker == worker.number),
        *(entry.n for entry in worker.signals if entry.what.signal == "SIGCONT"),
        *(entry.n for entry in story.healed if entry.what.worker in {0, worker.number}),
    ]
    freed = sorted(n for n in freed if n > later.began)
    if not freed or not worker.alive_at(freed[0]) or not story.entries:
        return ()
    died = next((i.died for i in worker.incarnations if i.died is not None and i.died > freed[0]), None)
    until = story.t(died) if died is not None else story.entries[-1].t
    lived_seconds = (until - story.t(freed[0])) / 1e9
    return (freed[0],) if lived_seconds >= ABSTAINS_SECONDS else ()


GAVE_UP = "gave up after resuming"
"""What a scenario says it saw when a worker, free to act after the takeover, did nothing for a stated time, or exited."""

ABSTAINS_SECONDS = 0.5
"""How long a worker must have run freely after the takeover before not writing counts as abstaining."""


@cache
def late_write_refused_or_abstained(change: str = "result") -> StoryFact:
    """After a takeover the earlier holder's late write moved no row, or it lived on freely and made none.

    ``change``: "complete", "fail", "release" or "renew"; "result" for any of them.
    """
    changes = _RESULTS if change == "result" else frozenset({change})
    return Fact(f"its late {change} was refused, or not made at all", lambda story: _late(story, changes))


late_result_refused_or_abstained: StoryFact = late_write_refused_or_abstained()


@cache
def late_write_arrived(change: str = "result") -> StoryFact:
    """After a takeover the earlier holder's late write reached the database, whatever came of it."""
    changes = _RESULTS if change == "result" else frozenset({change})

    def evidence(story: Story) -> tuple[int, ...]:
        for job, index, earlier, later in takeovers(story, live=True):
            for attempt in job.attempts:
                mine = attempt.event.worker == earlier.worker and attempt.n > later.began
                if mine and changes & set(attempt.event.changes):
                    return (later.n, attempt.n)
            for t in job.transitions[job.places[index] + 1 :]:
                if t.same_holder(earlier) and t.change in changes:
                    return (later.n, t.n)
        return ()

    return Fact(f"its late {change} reached the database", evidence)


def _late_call_after_takeover(story: Story) -> tuple[int, ...]:
    for job, _, earlier, later in takeovers(story, live=True):
        for call in job.calls:
            if call.worker == earlier.worker and call.n > later.began:
                return (later.n, call.n)
    return ()


late_call_after_takeover: StoryFact = Fact("it called after the takeover", _late_call_after_takeover)


def _late_call_or_abstained(story: Story) -> tuple[int, ...]:
    late = _late_call_after_takeover(story)
    if late:
        return late
    for job, _, earlier, later in takeovers(story, live=True):
        abstained = _abstained(story, job, earlier, later, frozenset())
        if abstained:
            return (later.n, *abstained)
    return ()


late_call_or_abstained: StoryFact = Fact("it called after the takeover, or abstained", _late_call_or_abstained)


# Locks and barriers.


@cache
def released_together(count: int) -> StoryFact:
    """``count`` workers stood in their claims in one look of the server, and none had been let go before the last was seen.

    One look: their ``Reached`` entries carry one and the same proof. In its claim: the server showed the worker in a statement
    which, once let go, was answered as a claim.
    """

    def evidence(story: Story) -> tuple[int, ...]:
        claims = {
            (entry.what.worker, entry.what.statement): entry.n
            for entry in story.entries
            if isinstance(entry.what, Attempted) and "claim" in entry.what.changes
        }
        looks: dict[tuple[str, str], dict[int, int]] = {}
        for entry in story.reached:
            stood = entry.what
            if claims.get((stood.worker, stood.statement), 0) > entry.n:
                looks.setdefault((stood.point, stood.proof), {})[stood.worker] = entry.n
        for (point, _), seen in looks.items():
            if len(seen) < count:
                continue
            first, last = min(seen.values()), max(seen.values())
            early = any(r.what.point == point and r.what.worker in seen and first < r.n < last for r in story.released)
            freed = {r.what.worker for r in story.released if r.n > last}
            if not early and set(seen) <= freed:
                return tuple(sorted(seen.values()))
        return ()

    return Fact(f"{count} workers were released together in their claims", evidence)


def rescues(story: Story) -> Iterator[tuple[int, str]]:
    """(entry, statement) of each change by which a worker took a job away from another that had written no result.

    Where the job was given back first, or ended, that is the rescue, and not the claim that followed, be it in one
    transaction with it or not; a job that only becomes visible again is taken away by the claim.
    """
    for job in story.jobs.values():
        for index in range(len(job.grants)):
            for given in _given_back(job, index):
                yield from _took_away(job, given)
    for job, index, _, later in takeovers(story, live=True):
        if not _given_back(job, index - 1):
            yield from _took_away(job, later)


def _given_back(job: Job, grant: int) -> list[Transition]:
    """The changes by which others gave back, ended or removed what was granted, before its holder wrote a result."""
    holder, found = job.grants[grant].worker, []
    for place in job.span(grant):
        transition = job.transitions[place]
        if transition.worker == holder and transition.change in {"complete", "fail", "release", "retire"}:
            break
        if transition.worker != holder and (transition.change in _TAKES_AWAY or _loses_its_owner(transition)):
            found.append(transition)
    return found


def _loses_its_owner(transition: Transition) -> bool:
    """Whether it stays running, and nobody's."""
    old, new = transition.moved.old, transition.moved.new
    if old is None or new is None or transition.change not in {"renew", "other"}:
        return False
    return old.owner is not None and new.owner is None


def _took_away(job: Job, taken: Transition) -> Iterator[tuple[int, str]]:
    """Truth shows what a transaction came to in all; on the wire, the first statement of it took the job away."""
    in_one = (notice for notice in job.notices if notice.event.xid == taken.moved.xid)
    first = next((notice for notice in in_one if notice.event.change in {"claim", *_TAKES_AWAY}), taken.notice)
    if first is not None:
        yield first.n, first.event.statement


def _stood_in_a_rescue(story: Story) -> tuple[int, ...]:
    for entry in story.reached:
        if entry.what.point == Point.SNAPSHOT and entry.what.statement:
            for n, statement in rescues(story):
                if n < entry.n and statement == entry.what.statement:
                    return (n, entry.n)
    return ()


stood_in_a_rescue: StoryFact = Fact("it stood in its takeover, before it locked a row", _stood_in_a_rescue)
"""The server showed it, its snapshot taken, in a statement by which a job was taken over earlier in this play."""


def _skipped_locked_row(story: Story) -> tuple[int, ...]:
    for start, end, worker, key in _row_holds(story):
        for job in story.jobs.values():
            for grant in job.grants:
                elsewhere = job.key != key and grant.worker != worker and grant.worker
                if elsewhere and start < grant.began < end:
                    return (start, grant.n)
    return ()


def _row_holds(story: Story) -> Iterator[tuple[int, int, int, str]]:
    """(from, until, worker or 0, key) while a row of ours was locked: by a worker that was stopped, or by the scenario."""
    endless = story.entries[-1].n + 1 if story.entries else 0
    for entry in story.reached:
        stood = entry.what
        if stood.point in {Point.CLAIMED, Point.COMMITTING} and stood.key is not None:
            free = (r.n for r in story.released if r.what.worker == stood.worker)
            yield entry.n, next((n for n in free if n > entry.n), endless), stood.worker, stood.key
    for landed in story.faults:
        fault = landed.what
        if fault.key is not None:
            healed = next((h.n for h in story.healed if h.n > landed.n and _heals(h.what, fault)), endless)
            yield landed.n, healed, fault.worker, fault.key


skipped_locked_row: StoryFact = Fact("skipped the locked row", _skipped_locked_row)
"""While one job's row was locked, another worker was granted another job."""


def _rolled_back(story: Story) -> tuple[int, ...]:
    for job in story.jobs.values():
        committed = {t.moved.xid for t in job.transitions}
        for notice in job.notices:
            if notice.event.change == "claim" and notice.event.xid not in committed:
                later = next((g for g in job.grants if g.began > notice.n), None)
                if later is not None:
                    return (notice.n, later.n)
        for entry in story.reached:
            stood = entry.what
            if stood.key == job.key and stood.point in {Point.CLAIMED, Point.COMMITTING}:
                kept = any(t.moved.pid == stood.pid for t in job.transitions)
                later = next((g for g in job.grants if g.began > entry.n), None)
                if not kept and later is not None:
                    return (entry.n, later.n)
    return ()


rolled_back_and_claimed_again: StoryFact = Fact("rolled back, and claimed again", _rolled_back)


@cache
def blocked_on(what: str) -> StoryFact:
    """A worker's backend was seen waiting behind a lock that the scenario holds: ``what`` is "table" or "row"."""

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.blocked:
            if on_table(entry.what) == (what == "table"):
                return (entry.n,)
        return ()

    return Fact(f"blocked on a {what} lock", evidence)


def on_table(blocked: Blocked) -> bool:
    """Whether a wait is for a lock on the whole table, which SKIP LOCKED does not skip."""
    return "relation" in blocked.wait.lower()


blocked_on_table_lock: StoryFact = blocked_on("table")
blocked_on_row_lock: StoryFact = blocked_on("row")


# Answers, deaths, restarts, quantities.


@cache
def answered(status: str) -> StoryFact:
    """The sink answered a call with this class: "2xx", "4xx", "5xx", or "nothing" when the connection broke."""
    said = _CLASSES[status]

    def evidence(story: Story) -> tuple[int, ...]:
        for call in story.calls.values():
            if call.answered is not None:
                got = "nothing" if call.status is None else f"{call.status // 100}xx"
                if got == status:
                    return (call.n, call.answered)
        return ()

    return Fact(f"a call was answered {status}: {said}", evidence)


@cache
def worker_died_times(times: int) -> StoryFact:
    """Worker processes died this many times in the play, all workers together."""

    def evidence(story: Story) -> tuple[int, ...]:
        deaths = sorted(i.fell for w in story.workers.values() for i in w.incarnations if i.fell is not None)
        return tuple(deaths[:times]) if len(deaths) >= times else ()

    return Fact(f"workers died {times} times" if times != 1 else "a worker died", evidence)


def _restarted_under_same_id(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for earlier, later in zip(worker.incarnations, worker.incarnations[1:], strict=False):
            if any(session.opened > later.started for session in worker.sessions):
                return (earlier.started, later.started)
    return ()


restarted_under_same_id: StoryFact = Fact("restarted under the same worker id", _restarted_under_same_id)


def _in_flight_past_its_lease(story: Story) -> tuple[int, ...]:
    lease = story.subject.lease_seconds
    for call in story.calls.values():
        if lease is not None and call.answered is not None and (story.t(call.answered) - call.t) / 1e9 > lease:
            return (call.n, call.answered)
    return ()


in_flight_past_its_lease: StoryFact = Fact("a call was in flight for longer than a lease", _in_flight_past_its_lease)


NOTHING_TO_BREAK = "no connection was open"


def _connections_broken_or_none(story: Story) -> tuple[int, ...]:
    ends = [e.n for e in story.faults if e.what.fault == "every backend of a worker terminated"]
    none = [e.n for e in story.saws if e.what.what == NOTHING_TO_BREAK]
    return tuple([*ends, *none][:1])


connections_broken_or_none: StoryFact = Fact(
    "every connection of a worker broke under its call, or it had none", _connections_broken_or_none
)


def _told_to_stop(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for seen in worker.signals:
            calls = [c for c in story.calls.values() if c.worker == worker.number and c.n < seen.n]
            if seen.what.signal == "SIGTERM" and any(c.answered is None or c.answered > seen.n for c in calls):
                return (calls[-1].n, seen.n)
    return ()


told_to_stop: StoryFact = Fact("told to stop in the middle of a call", _told_to_stop)


@cache
def more_jobs_than_slots(slots: int) -> StoryFact:
    """More jobs than ``slots`` were waiting before the first of them ended."""

    def evidence(story: Story) -> tuple[int, ...]:
        jobs = list(story.jobs.values())
        firsts = [t.began for job in jobs for t in job.transitions if t.moved.new is not None and _ended(t)]
        first = min(firsts, default=None)
        waiting = sorted(job.enqueued[0].n for job in jobs if job.enqueued)
        waiting = [n for n in waiting if first is None or n < first]
        return tuple(waiting[: slots + 1]) if len(waiting) > slots else ()

    return Fact(
        f"more than {slots} jobs waited at once" if slots != 1 else "more than one job waited at once", evidence
    )


def _ended(transition: Transition) -> bool:
    return transition.change in {"complete", "retire"} or (
        transition.moved.new is not None and transition.moved.new.state in {"done", "dead", "paused", "reconcile"}
    )


@cache
def batch_claimed(count: int) -> StoryFact:
    """One transaction granted at least ``count`` jobs."""

    def evidence(story: Story) -> tuple[int, ...]:
        batches: dict[int, list[int]] = {}
        for job in story.jobs.values():
            for grant in job.grants:
                batches.setdefault(grant.moved.xid, []).append(grant.n)
        return next((tuple(sorted(b)) for b in batches.values() if len(b) >= count), ())

    return Fact(f"{count} jobs were claimed in one transaction", evidence)


def _asked(story: Story) -> tuple[int, ...]:
    return next(((job.asks[0].n,) for job in story.jobs.values() if job.asks), ())


asked_the_outside: StoryFact = Fact("it asked the outside world", _asked)


@cache
def ended_as(state: str) -> StoryFact:
    """A job of ours ended in this state."""

    def evidence(story: Story) -> tuple[int, ...]:
        for job in story.jobs.values():
            row = job.final_row()
            if row is not None and row.state == state:
                return (job.final.n,) if job.final is not None else (job.transitions[-1].n,)
        return ()

    return Fact(f"a job ended as {state}", evidence)


def _server_was_hurt(story: Story) -> tuple[int, ...]:
    return next(((entry.n,) for entry in story.faults if strikes_server(entry.what)), ())


server_was_hurt: StoryFact = Fact("the server was hurt", _server_was_hurt)


@cache
def fault_landed(fault: str) -> StoryFact:
    """A fault of this name took effect."""

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.faults:
            if entry.what.fault == fault:
                return (entry.n,)
        return ()

    return Fact(f"the fault '{fault}' landed", evidence)


@cache
def saw(what: str) -> StoryFact:
    """The scenario saw this with its own eyes and recorded it."""

    def evidence(story: Story) -> tuple[int, ...]:
        return tuple(entry.n for entry in story.saws if entry.what.what == what)[:3]

    return Fact(f"seen: {what}", evidence)


@cache
def waited_out(what: str) -> StoryFact:
    """A stated wait was met in its time."""

    def evidence(story: Story) -> tuple[int, ...]:
        met = (e.n for e in story.waits if e.what.what == what and e.what.met)
        return next(((n,) for n in met), ())

    return Fact(f"in time: {what}", evidence)


# From a sentence back to its fact.


def _fixed() -> dict[str, StoryFact]:
    facts = [
        taken_over,
        taken_over_by_another,
        leased_as_declared,
        paused_past_lease,
        resumed,
        network_cut_past_lease,
        backend_ended_before_commit,
        orphan_committed,
        late_call_after_takeover,
        late_call_or_abstained,
        skipped_locked_row,
        stood_in_a_rescue,
        rolled_back_and_claimed_again,
        restarted_under_same_id,
        asked_the_outside,
        server_was_hurt,
        in_flight_past_its_lease,
        told_to_stop,
        connections_broken_or_none,
        worker_died_times(1),
        more_jobs_than_slots(1),
        *(make(point) for make in (reached, killed_at, paused_at) for point in Point),
        *(reply_lost(change) for change in ("claim", "result")),
        *(
            make(change)
            for make in (late_write_refused_or_abstained, late_write_arrived)
            for change in ("result", "complete", "fail", "release", "renew")
        ),
        *(blocked_on(what) for what in ("table", "row")),
        *(answered(status) for status in _CLASSES),
    ]
    return {fact.sentence: fact for fact in facts}


_FIXED = _fixed()
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str], StoryFact]], ...] = (
    (re.compile(r"(\d+) workers were released together in their claims"), lambda text: released_together(int(text))),
    (re.compile(r"workers died (\d+) times"), lambda text: worker_died_times(int(text))),
    (re.compile(r"more than (\d+) jobs waited at once"), lambda text: more_jobs_than_slots(int(text))),
    (re.compile(r"(\d+) jobs were claimed in one transaction"), lambda text: batch_claimed(int(text))),
    (re.compile(r"a job ended as (\w+)"), ended_as),
    (re.compile(r"the fault '(.*)' landed"), fault_landed),
    (re.compile(r"seen: (.*)", re.DOTALL), saw),
    (re.compile(r"in time: (.*)", re.DOTALL), waited_out),
)


def fact_named(sentence: str) -> StoryFact | None:
    """The fact with this sentence, None when no fact says that."""
    fixed = _FIXED.get(sentence)
    if fixed is not None:
        return fixed
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(sentence)
        if match:
            return make(match.group(1))
    return None
