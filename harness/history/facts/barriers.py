"""Workers that are let go at one instant."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.events import Attempted
from harness.history.facts import StoryFact
from harness.history.story import Story


@cache
def released_together(count: int) -> StoryFact:
    """``count`` workers stood in their claims in one look of the server, and none had been let go before the last was seen.

    One look: their ``Reached`` entries carry one and the same proof. In its claim: the server showed the worker in a statement
    which, once let go, was answered as a claim.
    """

    def evidence(story: Story) -> tuple[int, ...]:
        claims = {
            (entry.what.worker, entry.what.statement): entry.n
            for entry in story.entries
            if isinstance(entry.what, Attempted) and "claim" in entry.what.changes
        }
        looks: dict[tuple[str, str], dict[int, int]] = {}
        for entry in story.reached:
            stood = entry.what
            if claims.get((stood.worker, stood.statement), 0) > entry.n:
                looks.setdefault((stood.point, stood.proof), {})[stood.worker] = entry.n
        for (point, _), seen in looks.items():
            if len(seen) < count:
                continue
            first, last = min(seen.values()), max(seen.values())
            early = any(r.what.point == point and r.what.worker in seen and first < r.n < last for r in story.released)
            freed = {r.what.worker for r in story.released if r.n > last}
            if not early and set(seen) <= freed:
                return tuple(sorted(seen.values()))
        return ()

    return Fact(f"{count} workers were released together in their claims", evidence)
