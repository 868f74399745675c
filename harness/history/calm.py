"""Whether a worker was left alone for a while: what it then failed to do is its own doing, not an injury's.

Only what hurts counts: a call that the sink takes long over is a slow world, and SIGTERM is a request. A machine that stalls
hurts everybody, so that nothing is said of that time.
"""

from harness.contracts.point import Point
from harness.history.job import Transition
from harness.history.story import Story

_OUTSIDE = frozenset({Point.CALLING.value, Point.CALLED.value})
_REQUESTS = frozenset({"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"})


def left_alone(story: Story, grant: Transition, until: int) -> bool:
    """Whether nothing of ours hurt the holder of a grant, or the server, before entry ``until`` (whenever it began)."""
    worker = story.worker(grant.worker)
    if not worker.alive_at(until) or (worker.incarnations and not _same_life(story, grant, until)):
        return False
    if any(seen.n < until and seen.what.signal not in _REQUESTS for seen in worker.signals):
        return False
    if any(fault.n < until and fault.what.worker in {0, grant.worker} for fault in story.faults):
        return False
    if any(ended.n < until and ended.what.worker == grant.worker for ended in story.backends_ended):
        return False
    return not any(
        stood.n < until and stood.what.worker == grant.worker and stood.what.point not in _OUTSIDE
        for stood in story.reached
    )


def _same_life(story: Story, grant: Transition, until: int) -> bool:
    life = story.worker(grant.worker).incarnation_at(until)
    return life is not None and grant.incarnation in {0, life.number}


def stalled_between(story: Story, since: int, until: int) -> int | None:
    """The entry of a stall of the machine between two entries, None when there was none."""
    return next((stall.n for stall in story.stalls if since <= stall.n <= until), None)
