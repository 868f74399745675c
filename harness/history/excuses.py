"""What excuses a repeated call of one job: each of these allows one repeat, and nothing else does.

The lease's end by truth, the worker's death, a lost claim or result reply, a non-2xx or broken sink reply, a release at
shutdown, a server restart, an operator's requeue. Some are row transitions, placed in truth's order among the grants of
the two calls; the others are entries, placed by number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.contracts.point import Point
from harness.history.events import FaultLanded
from harness.history.job import Call, Job, Transition
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

_RESULTS = frozenset({"complete", "fail", "release", "retire"})
_SHUTDOWN = frozenset({"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"})


@dataclass(frozen=True)
class Excuse:
    """One reason for one repeat: the entries that show it, and the row transitions (their places in truth's order) that do.

    A holder's death and the end of its lease are one loss of one grant, so they make one excuse, not two.
    """

    why: str
    entries: tuple[int, ...] = ()
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Repeat:
    """A call of a job that had been called before, and what excuses it, if anything does."""

    before: Call
    call: Call
    excuse: Excuse | None


def strikes_server(fault: FaultLanded) -> bool:
    """Whether a fault hurt the whole server, not one worker."""
    name = fault.fault.lower()
    return fault.worker == 0 and any(word in name for word in ("server", "postgres", "database", "postmaster"))


def strikes_network(fault: FaultLanded) -> bool:
    """Whether a fault cut a worker off the network."""
    name = fault.fault.lower()
    return any(word in name for word in ("network", "cut", "connection", "black hole", "partition", "sever"))


def repeats(story: Story, job: Job) -> tuple[Repeat, ...]:
    """Every call after the first, each with an excuse of its own or none."""
    if len(job.calls) < 2:
        return ()
    excuses = list(_excuses(story, job))
    found = []
    for before, call in zip(job.calls, job.calls[1:], strict=False):
        excuse = next((excuse for excuse in excuses if _between(job, before, call, excuse)), None)
        if excuse is not None:
            excuses.remove(excuse)
        found.append(Repeat(before, call, excuse))
    return tuple(found)


def _between(job: Job, before: Call, call: Call, excuse: Excuse) -> bool:
    """Whether an excuse lies between two calls: between the calls themselves, or between the grants they were made under.

    A worker that was paused before its call makes it after the takeover's own call; what excuses it happened before both.
    """
    indices = [c.grant for c in (before, call) if c.grant >= 0]
    places = [job.places[index] for index in indices]
    if len(places) == 2 and any(min(places) < place <= max(places) for place in excuse.places):
        return True
    since = min([before.n, *(job.grants[index].began for index in indices)])
    return any(since < n < call.n for n in excuse.entries)


def _excuses(story: Story, job: Job) -> list[Excuse]:
    found = [*_losses(story, job), *_by_rows(story, job), *_by_replies(story, job), *_by_server(story)]
    return sorted(found, key=lambda excuse: min(excuse.entries, default=0))


def _losses(story: Story, job: Job) -> Iterator[Excuse]:
    """Of each grant, one excuse: how its holder came to lose it."""
    for index, grant in enumerate(job.grants):
        why: list[str] = []
        entries: list[int] = []
        places: list[int] = []
        end = job.places[index + 1] if index + 1 < len(job.places) else None
        for place in [*job.span(index), *([end] if end is not None else [])]:
            transition = job.transitions[place]
            # Giving back what is over may be the rescue of a worker that comes upon a job of its own.
            if transition.change not in {"claim", "release", "fail"} and transition.same_holder(grant):
                continue
            if transition.worker and lease_at(story, job, place).lease in {Lease.OVER, Lease.UNKNOWN}:
                why.append("the lease's end")
                places.append(place)
        for incarnation in story.worker(grant.worker).incarnations:
            same = grant.incarnation in {0, incarnation.number}
            if same and incarnation.died is not None and _holding_at(job, index, incarnation.died):
                why.append(f"the death of worker {grant.worker}")
                entries.append(incarnation.died)
        for n, cut in _cuts(story, grant.worker, job.key):
            if _holding_at(job, index, n):
                why.append(cut)
                entries.append(n)
        if why:
            yield Excuse(" and ".join(dict.fromkeys(why)), tuple(entries), tuple(places))


def _holding_at(job: Job, index: int, n: int) -> bool:
    """Whether a grant had begun by entry ``n`` and its holder had not yet written a result of it."""
    grant = job.grants[index]
    if grant.notice is not None and grant.notice.n > n:
        return False
    for place in job.span(index):
        transition = job.transitions[place]
        wrote = transition.change in _RESULTS and transition.same_holder(grant)
        if wrote and transition.notice is not None and transition.notice.n < n:
            return False
    return True


def _cuts(story: Story, worker: int, key: str) -> Iterator[tuple[int, str]]:
    """What may have lost a reply to this worker."""
    for ended in story.backends_ended:
        if ended.what.worker == worker:
            yield ended.n, "a reply lost with its backend"
    for fault in story.faults:
        if fault.what.worker == worker and strikes_network(fault.what):
            yield fault.n, "a network cut"
    for stood in story.reached:
        if stood.what.point == Point.COMMIT_LOST and stood.what.worker == worker and stood.what.key in {None, key}:
            yield stood.n, "a lost claim reply"


def _by_rows(story: Story, job: Job) -> Iterator[Excuse]:
    for place, transition in enumerate(job.transitions):
        moved = transition.moved
        if moved.change == "enqueue":
            continue
        if moved.worker == 0 and moved.new is not None and moved.new.state in {"pending", "retry"}:
            yield Excuse("an operator's requeue", (transition.n,), (place,))
        elif moved.change == "release" and _shutting_down(story, transition):
            holder = job.holder_before(place)
            if holder is not None and transition.same_holder(holder):
                yield Excuse("a release at shutdown", (transition.began,), (place,))


def _shutting_down(story: Story, transition: Transition) -> bool:
    return any(
        entry.what.signal in _SHUTDOWN and entry.n < transition.known_by
        for entry in story.worker(transition.worker).signals
    )


def _by_replies(story: Story, job: Job) -> Iterator[Excuse]:
    for call in job.calls:
        if call.refused and call.answered is not None:
            yield Excuse("a sink reply that was not 2xx, or broke", (call.answered,))
    holders = {grant.worker for grant in job.grants}
    for entry in story.reached:
        stood = entry.what
        ours = stood.worker in holders and stood.key in {None, job.key}
        if stood.point == Point.RESULT_LOST and ours:
            yield Excuse("a lost result reply", (entry.n,))


def _by_server(story: Story) -> Iterator[Excuse]:
    for entry in story.faults:
        if strikes_server(entry.what):
            yield Excuse("a server restart", (entry.n,))
