"""What a worker did after it had lost its job, or that it did nothing."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.facts import StoryFact
from harness.history.facts.takeovers import takeovers
from harness.history.job import Job, Transition
from harness.history.story import Story

_RESULTS = frozenset({"complete", "fail", "release", "renew"})


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
