"""Jobs are claimed in the order that the subject declares, wherever that can be told for sure.

Rule: "order" of the subject: "run_at" (earlier first), "priority" (smaller number first, then run_at), "per-key" (of one group,
one at a time, in the order of enqueueing). A job was passed over for sure only if its row was committed, and known to be, before
the claiming session's statement could begin, was due, and was next touched by a transaction that began after the claim's
row had changed. Jobs that were held, stopped at, touched by a transaction that rolled back, or that share a group with another
are left out. Source: Q4, Q18, V2.
"""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import Row
from harness.history.job import ENDED, Job, Transition
from harness.history.story import Story

NAME = "claim_order"
NEVER = 1 << 62
WAITS = frozenset({"pending", "retry"})

Rank = tuple[int, int]


class _Waiting(NamedTuple):
    """A time during which a job surely waited, free: from entry ``since`` until the database's clock says ``until_us``."""

    rank: Rank
    since: int
    until_us: int
    due_us: int
    key: str


def _applies(story: Story) -> str | None:
    if story.subject.order == "none":
        return "the subject promises no order"
    if story.subject.order == "per-key":
        grouped = any(job.enqueued and job.enqueued[0].what.group is not None for job in story.jobs.values())
        return None if grouped else "no job had a group"
    rows = (transition.moved.new for job in story.jobs.values() for transition in job.transitions)
    shown = any(row is not None and row.run_at_us is not None for row in rows)
    return None if shown or _priorities_named(story) else "neither a run_at nor a priority of any job was to be seen"


def _priorities_named(story: Story) -> bool:
    return any(job.enqueued[0].what.priority is not None for job in story.jobs.values() if job.enqueued)


@invariant(
    serves=("Q4", "Q15", "Q18", "V2"),
    broken_queue="newest_first",
    applies=_applies,
    mend=(
        "Put the promised order into the sub-select that locks and limits (`order by run_at, id limit $1 for update "
        "skip locked`). Per key, grant a job only when no earlier one of its key is still open, and one per claim."
    ),
)
def claim_order(story: Story) -> Iterator[Finding | Unknown]:
    """Jobs are claimed in the declared order."""
    if story.subject.order == "per-key":
        yield from _serial(story)
    else:
        yield from _ranked(story)


def _ranked(story: Story) -> Iterator[Finding]:
    # Where nobody names a priority all have the same; beside ones that are named, an unnamed one's place is not known.
    priority = story.subject.order == "priority" and _priorities_named(story)
    waiting: list[_Waiting] = []
    claims: list[tuple[int, Rank, Job, Transition]] = []
    for job in story.jobs.values():
        if not job.enqueued:
            continue
        last = len(job.transitions) - 1
        for place, transition in enumerate(job.transitions):
            moved, notice = transition.moved, transition.notice
            if moved.change == "claim":
                rank = _rank(job, moved.old, priority=priority)
                if rank is not None and notice is not None and notice.after:
                    claims.append((notice.after, rank, job, transition))
            elif moved.new is not None and moved.new.state in WAITS:
                rank = _rank(job, moved.new, priority=priority)
                if rank is not None:
                    since = job.enqueued[0].n if moved.change == "enqueue" else transition.known_by
                    until = job.transitions[place + 1].moved.transaction_us if place < last else NEVER
                    waiting.append(_Waiting(rank, since, until, moved.new.run_at_us or 0, job.key))
    claims.sort(key=lambda claim: claim[0])
    held = _held(story, claims[-1][3].n if claims else 0) | _of_groups(story)
    yield from _passed_over(story, sorted((w for w in waiting if w.key not in held), key=lambda w: w.since), claims)


def _passed_over(
    story: Story, waiting: list[_Waiting], claims: list[tuple[int, Rank, Job, Transition]]
) -> Iterator[Finding]:
    free: list[_Waiting] = []
    arrived = 0
    for after, rank, job, claim in claims:
        while arrived < len(waiting) and waiting[arrived].since < after:
            heapq.heappush(free, waiting[arrived])
            arrived += 1
        not_due: list[_Waiting] = []
        while free and free[0].rank < rank:
            best = free[0]
            if best.until_us <= claim.moved.wall_us:
                heapq.heappop(free)
            elif best.due_us > claim.moved.transaction_us or best.key == job.key:
                not_due.append(heapq.heappop(free))
            else:
                yield _finding(story, job, claim, best)
                break
        for each in not_due:
            heapq.heappush(free, each)


def _rank(job: Job, row: Row | None, *, priority: bool) -> Rank | None:
    """Where a waiting row stands in the order; None when it does not wait or its place is not known. Takeovers have none."""
    if row is None or row.state not in WAITS:
        return None
    if not priority:
        return None if row.run_at_us is None else (0, row.run_at_us)
    number = job.enqueued[0].what.priority
    return None if number is None else (number, row.run_at_us or 0)


def _held(story: Story, last: int) -> set[str]:
    """Keys whose rows somebody may have locked, without changing them, before entry ``last``."""
    held = {stood.what.key for stood in story.reached} | {fault.what.key for fault in story.faults}
    held |= {seen.what.key for seen in story.saws}
    keys = {key for key in held if key is not None}
    for job in story.jobs.values():
        if job.rolled_back:
            keys.add(job.key)
    # A worker that was stopped with rows locked, or killed with them, may have held any row.
    blind = any(stood.what.key is None and stood.what.point in {"claimed", "committing"} for stood in story.reached)
    lives = [life for worker in story.workers.values() for life in worker.incarnations]
    deaths = [life.died for life in lives if life.died is not None] + [ended.n for ended in story.backends_ended]
    # So may a claim that the server refused: what it had locked by then is not told.
    attempts = [*story.unnamed, *(attempt for job in story.jobs.values() for attempt in job.attempts)]
    refused = [a.n for a in attempts if a.event.sqlstate is not None and "claim" in a.event.changes]
    if blind or any(n < last for n in (*deaths, *refused)):
        keys |= set(story.jobs)
    return keys


def _of_groups(story: Story) -> set[str]:
    """Keys that share a group with another: they may wait for each other, whatever the order says."""
    groups: dict[str, list[str]] = {}
    for job in story.jobs.values():
        if job.enqueued and job.enqueued[0].what.group is not None:
            groups.setdefault(job.enqueued[0].what.group, []).append(job.key)
    return {key for keys in groups.values() if len(keys) > 1 for key in keys}


def _finding(story: Story, job: Job, claim: Transition, passed: _Waiting) -> Finding:
    other = story.jobs[passed.key]
    sentence = (
        f"worker {claim.worker} had to claim job {passed.key!r} before job {job.key!r}, because it comes first by"
        f" {story.subject.order} and had waited, free and due, since {story.clock(passed.since)}; however, it claimed {job.key!r} by"
        f" transaction {claim.moved.xid} while the other still waited"
    )
    return Finding(NAME, sentence, (other.enqueued[0].n, passed.since, claim.n), job.key, (claim.worker,))


def _serial(story: Story) -> Iterator[Finding]:
    groups: dict[str, list[Job]] = {}
    for job in story.jobs.values():
        if job.enqueued and job.enqueued[0].what.group is not None:
            groups.setdefault(job.enqueued[0].what.group, []).append(job)
    for group, jobs in groups.items():
        jobs.sort(key=lambda job: job.enqueued[0].n)
        open_until, before = 0, None
        for job in jobs:
            first = job.grants[0] if job.grants else None
            if before is not None and first is not None and open_until > first.moved.wall_us:
                yield _overtaken(group, before, job, first)
                break
            ended = _ended_us(job)
            if ended >= open_until:
                open_until, before = ended, job


def _ended_us(job: Job) -> int:
    """When the transition that ended a job changed its row, by the database's clock; NEVER when it has not ended."""
    if not job.transitions:
        return 0
    for transition in job.transitions:
        if transition.moved.new is None or transition.moved.new.state in ENDED:
            return transition.moved.wall_us
    return NEVER


def _overtaken(group: str, before: Job, job: Job, grant: Transition) -> Finding:
    shown = before.transitions[-1]
    sentence = (
        f"job {job.key!r} had to wait, because job {before.key!r} of the same group {group!r} was enqueued before it and had not"
        f" ended; however, worker {grant.worker} was granted it by transaction {grant.moved.xid}"
    )
    return Finding(NAME, sentence, (before.enqueued[0].n, shown.n, grant.n), job.key, (grant.worker,))
