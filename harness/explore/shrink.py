"""Makes a violation small: fewer jobs, then fewer moves, then fewer changes from one worker to another.

Each attempt is a run of its own on the real server, judged as every other, so what is left is a violation. It may be of
another invariant than at first: a job that is granted twice is wrong before its second completion is.
"""

import time
from collections.abc import Sequence

from harness.explore.schedule import Kind, Move, Schedule, switches
from harness.explore.stage import Diverged, Ending, Stage
from harness.explore.tree import Ran


async def follow(stage: Stage, moves: Sequence[Move], *, strict: bool = False) -> tuple[Schedule, Ending]:
    """Run these moves from the beginning, and judge there. Moves that are not possible are left out, or raise if ``strict``."""
    await stage.begin()
    made: list[Move] = []
    for move in moves:
        if move not in await stage.enabled():
            if strict:
                raise Diverged(f"{move} is not possible after {len(made)} moves")
            continue
        await stage.perform(move)
        made.append(move)
    return tuple(made), await stage.end()


class Shrinker:
    """``shrink`` once. ``jobs`` of the stage is lowered as far as it goes, and stays there."""

    def __init__(self, stage: Stage, *, within_seconds: float) -> None:
        self._stage = stage
        self._deadline = time.monotonic() + within_seconds
        self.attempts = 0

    async def shrink(self, found: Ran) -> Ran:
        """The smallest that was found in time."""
        best = found
        for _ in range(3):
            before = best.schedule
            best = await self._fewer_moves(best)
            best = await self._fewer_jobs(best)
            best = await self._fewer_switches(best)
            if best.schedule == before:
                break
        return await self._first_is_first(best)

    async def _first_is_first(self, best: Ran) -> Ran:
        """Workers run the same program: number them in the order in which they move, if that does it too."""
        workers = list(dict.fromkeys(move.number for move in best.schedule if move.worker))
        numbers = {old: new for new, old in enumerate(workers, 1)}
        renamed = [Move(move.kind, numbers[move.number]) if move.worker else move for move in best.schedule]
        return best if tuple(renamed) == best.schedule else await self._try(renamed) or best

    async def _try(self, moves: Sequence[Move]) -> Ran | None:
        if time.monotonic() > self._deadline:
            return None
        self.attempts += 1
        try:
            made, ending = await follow(self._stage, moves)
        except Diverged:
            return None
        return Ran(made, ending, 1) if ending.findings else None

    async def _fewer_jobs(self, best: Ran) -> Ran:
        """With fewer jobs as it is, or without what the others took: one stretch of the schedule, the longest first."""
        all_jobs: int = getattr(self._stage, "jobs", 1)
        for jobs in range(1, all_jobs):
            self._stage.jobs = jobs  # type: ignore[attr-defined]
            moves = tuple(move for move in best.schedule if move.kind is not Kind.EXPIRE or move.number <= jobs)
            for length in (0, *range(len(moves) - 2, 0, -1)):
                for place in range(len(moves) - length + 1 if length else 1):
                    smaller = await self._try(moves[:place] + moves[place + length :])
                    if smaller is not None:
                        return smaller
        if all_jobs > 1:
            self._stage.jobs = all_jobs  # type: ignore[attr-defined]
        return best

    async def _fewer_moves(self, best: Ran) -> Ran:
        """First the tail, which comes after what is wrong; then each move by itself."""
        size = len(best.schedule) // 2
        while size:
            shorter = await self._try(best.schedule[:-size])
            best = shorter or best
            size = min(size // 2 if shorter is None else size, len(best.schedule) // 2)
        place = len(best.schedule) - 1
        while place >= 0:
            without = best.schedule[:place] + best.schedule[place + 1 :]
            shorter = await self._try(without)
            if shorter is not None and len(shorter.schedule) < len(best.schedule):
                best = shorter
            place = min(place, len(best.schedule)) - 1
        return best

    async def _fewer_switches(self, best: Ran) -> Ran:
        place = 0
        while place < len(best.schedule) - 1:
            moves = list(best.schedule)
            moves[place], moves[place + 1] = moves[place + 1], moves[place]
            if switches(moves) < switches(best.schedule):
                calmer = await self._try(moves)
                if calmer is not None and switches(calmer.schedule) < switches(best.schedule):
                    best = calmer
            place += 1
        return best
