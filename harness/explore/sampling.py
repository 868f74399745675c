"""For cases too large to enumerate: schedules by random priorities, with a stated chance of finding what is there.

Each thread of moves (a worker, a lease's end) gets a random priority and the highest that can move does. At ``depth - 1``
random moments the thread about to move falls below all others. A violation of depth d is one that d orderings between
steps suffice to bring about. Of n threads and at most k moves, one such run finds a given one with probability at least
1 / (n k^(d-1)) (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010); m runs with at least 1 - (1 - p)^m.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.explore.schedule import Move
from harness.explore.stage import Diverged, Stage
from harness.explore.tree import MOST_TRIES, Ran, Tally


@dataclass(frozen=True)
class Chance:
    """The bound for one depth: after ``runs`` runs a violation of that depth is found at least this likely."""

    depth: int
    threads: int
    moves: int
    runs: int

    @property
    def per_run(self) -> float:
        return 1 / float(self.threads * self.moves ** (self.depth - 1))

    @property
    def overall(self) -> float:
        return float(1 - (1 - self.per_run) ** self.runs)


class Sampler:
    """Runs schedules drawn with the given seed; ``tally.interleavings`` counts distinct ones."""

    def __init__(self, stage: Stage, seed: int, *, moves: int, depth: int = 3) -> None:
        self._stage = stage
        self._random = random.Random(seed)
        self._moves = max(1, moves)
        self._depth = depth
        self._seen: set[tuple[Move, ...]] = set()
        self.tally = Tally()

    async def run(self, ran: Callable[[Ran], bool], going: Callable[[], bool]) -> Tally:
        """As ``Explorer.run``, without ever being complete."""
        while going():
            done = await self._once()
            tally = self.tally
            tally.runs += 1
            tally.longest = max(tally.longest, len(done.schedule))
            self._moves = max(self._moves, len(done.schedule))
            if done.schedule not in self._seen:
                self._seen.add(done.schedule)
                tally.interleavings += 1
            if done.ending.undecided:
                tally.undecided += 1
                tally.why_undecided = tally.why_undecided or done.ending.undecided
            for thread in {move.thread for move in done.schedule}:
                length = sum(1 for move in done.schedule if move.thread == thread)
                tally.lengths[thread] = max(tally.lengths.get(thread, 0), length)
            if not ran(done):
                break
        return self.tally

    async def _once(self) -> Ran:
        for attempt in range(1, MOST_TRIES + 1):
            try:
                schedule = await self._draw()
                return Ran(schedule, await self._stage.end(), 1)
            except Diverged:
                self.tally.diverged += 1
                if attempt == MOST_TRIES:
                    raise
        raise AssertionError("the loop returns or raises")

    async def _draw(self) -> tuple[Move, ...]:
        priorities: dict[str, float] = {}
        falls = sorted(self._random.randint(1, self._moves) for _ in range(self._depth - 1))
        schedule: list[Move] = []
        await self._stage.begin()
        while enabled := await self._stage.enabled():
            for move in enabled:
                priorities.setdefault(move.thread, self._random.uniform(1, 2))
            move = self._highest(enabled, priorities)
            while falls and len(schedule) + 1 >= falls[0]:
                priorities[move.thread] = -float(self._depth - len(falls))
                falls.pop(0)
                move = self._highest(enabled, priorities)
            await self._stage.perform(move)
            schedule.append(move)
        return tuple(schedule)

    def _highest(self, enabled: Sequence[Move], priorities: dict[str, float]) -> Move:
        best = max(priorities[move.thread] for move in enabled)
        return self._random.choice([move for move in enabled if priorities[move.thread] == best])
