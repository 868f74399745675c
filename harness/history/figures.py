"""Figures measured in one play, from its story: durations that the acceptance records show beside the verdict."""

from harness.history.events import Moved
from harness.history.facts.takeovers import takeovers
from harness.history.story import Story


def figures(story: Story) -> dict[str, float | int | str]:
    """What was measured: how long takeovers took (by the database's clock), and how many jobs, grants, calls, effects."""
    jobs = story.jobs.values()
    found: dict[str, float | int | str] = {
        "jobs": len([job for job in jobs if job.ours]),
        "grants": sum(len(job.grants) for job in jobs),
        "calls": sum(len(job.calls) for job in jobs),
        "effects": sum(1 for job in jobs for call in job.calls for _, outcome in call.applied if outcome == "effect"),
    }
    taken = [(earlier.moved, later.moved) for _, _, earlier, later in takeovers(story)]
    if taken:
        found["takeover_seconds"] = round(max(_seconds(earlier, later) for earlier, later in taken), 3)
    if len(taken) == 1 and taken[0][0].new is not None and taken[0][0].new.lease_us is not None:
        earlier, later = taken[0]
        lease_us = _last_lease_us(earlier, later)
        found["after_lease_end_ms"] = round((later.wall_us - lease_us) / 1000, 1)
    return found


def _seconds(earlier: Moved, later: Moved) -> float:
    return (later.wall_us - earlier.wall_us) / 1_000_000


def _last_lease_us(earlier: Moved, later: Moved) -> int:
    """The lease's end as the row had it just before the takeover, renewals included."""
    if later.old is not None and later.old.lease_us is not None:
        return later.old.lease_us
    return earlier.new.lease_us if earlier.new is not None and earlier.new.lease_us is not None else later.wall_us
