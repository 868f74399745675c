"""By which statement a job is taken away from a worker, and who stood in it."""

from collections.abc import Iterator

from harness.contracts.fact import Fact
from harness.contracts.point import Point
from harness.history.facts import StoryFact
from harness.history.facts.takeovers import takeovers
from harness.history.job import Job, Notice, Transition
from harness.history.story import Story

_TAKES_AWAY = frozenset({"fail", "release", "retire"})  # when another than the holder makes it


def rescues(story: Story) -> Iterator[Notice]:
    """What the wire saw of each change by which a worker took a job away from another that had written no result.

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


def _took_away(job: Job, taken: Transition) -> Iterator[Notice]:
    """Truth shows what a transaction came to in all; on the wire, the first statement of it took the job away."""
    in_one = (notice for notice in job.notices if notice.event.xid == taken.moved.xid)
    first = next((notice for notice in in_one if notice.event.change in {"claim", *_TAKES_AWAY}), taken.notice)
    if first is not None:
        yield first


RESULT_BEFORE_RESCUE = "a result was accepted between a rescuer's look and its write"
RESULT_BEHIND_RESCUE = "a result waited for a row that a rescuer held from its look to its write"


def _stood_in_a_rescue(story: Story) -> tuple[int, ...]:
    for entry in story.reached:
        if entry.what.point in {Point.SNAPSHOT, Point.CLAIMED} and entry.what.statement:
            for notice in rescues(story):
                if notice.n < entry.n and notice.event.statement == entry.what.statement:
                    return (notice.n, entry.n)
    return ()


stood_in_a_rescue: StoryFact = Fact("it stood in its takeover, before it wrote", _stood_in_a_rescue)
"""The server showed it, its snapshot taken, in a statement by which a job was taken over earlier in this play."""


def _result_met_a_rescue(story: Story) -> tuple[int, ...]:
    met = (entry.n for entry in story.saws if entry.what.what in {RESULT_BEFORE_RESCUE, RESULT_BEHIND_RESCUE})
    return tuple(met)[:1]


result_met_a_rescue: StoryFact = Fact(
    "a result came between a rescuer's look and its write, or was kept out by the row's lock", _result_met_a_rescue
)
