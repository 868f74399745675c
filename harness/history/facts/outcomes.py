"""How many jobs there were, and what became of them."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.facts import StoryFact
from harness.history.job import Transition
from harness.history.story import Story


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
