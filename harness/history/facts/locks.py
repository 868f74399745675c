"""Rows and tables that were locked while others came."""

from collections.abc import Iterator
from functools import cache

from harness.contracts.fact import Fact
from harness.contracts.point import Point
from harness.history.events import Blocked
from harness.history.facts import StoryFact
from harness.history.facts.takeovers import heals
from harness.history.story import Story


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
            healed = next((h.n for h in story.healed if h.n > landed.n and heals(h.what, fault)), endless)
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
