"""Deaths, restarts and broken connections of workers."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.facts import StoryFact
from harness.history.story import Story


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
