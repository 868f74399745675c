"""Where a worker stood when it was stopped, killed or cut off from its reply."""

from collections.abc import Iterator
from functools import cache

from harness.contracts.fact import Fact
from harness.contracts.point import Point
from harness.history.events import Reached
from harness.history.facts import StoryFact
from harness.history.facts.takeovers import pauses
from harness.history.job import Transition
from harness.history.story import Story

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
            for stop, _ in pauses(story, worker):
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
