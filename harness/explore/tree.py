"""Every order of a case, depth first, by running each from the beginning; equivalent orders are skipped by sleep sets.

Why skipping is sound. Let two moves be independent at a state when neither reads or writes what the other writes
(``footprint``). Then either order of the two leads to the same state, neither enables, disables or changes the other, and
the two histories differ only in the order of two neighbours that concern different jobs, to which no judgement is
sensitive. Schedules that differ by such swaps form a class, and one member decides for all.

A sleep set holds, at a state, moves that need not be tried there. Move ``a`` enters it when its subtree has been explored
at a state before and the exploration goes on with ``b``, which is independent of ``a``: whatever starts with ``b a`` from here has
an equivalent that starts with ``a b``, which has been seen. It stays asleep below as long as every further move is
independent of it, and wakes with the first that is not. So of each class at least one member is run to its end (Godefroid,
1996, theorem 5.2), and since ``a``'s footprint was measured at a state that differs only by independent moves, it is still
what ``a`` would touch. Without further tricks exactly one member of each class is run to its end; a run in which every
move there is sleeps is given up as redundant. ``orders`` then counts what each class stands for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.explore.counting import Step, dependent, orders
from harness.explore.footprint import EVERYTHING, Footprint
from harness.explore.schedule import Move, Schedule, told
from harness.explore.stage import Diverged, Ending, Stage

MOST_TRIES = 5


@dataclass
class Ran:
    """One schedule that was run to its end."""

    schedule: Schedule
    ending: Ending
    stands_for: int  # orders, itself included


@dataclass
class Tally:
    """What an exploration has done so far."""

    runs: int = 0  # schedules run to their end
    interleavings: int = 0  # orders that they stand for
    redundant: int = 0  # runs given up because every move slept
    diverged: int = 0  # runs repeated because the same moves led elsewhere
    given_up: int = 0  # branches left after that had happened too often
    undecided: int = 0  # runs that could not be judged
    why_undecided: str = ""
    complete: bool = False  # every order was covered
    longest: int = 0
    lengths: dict[str, int] = field(default_factory=dict)  # per thread, the most moves it made in a run


@dataclass
class _Node:
    """A state on the current path: what could move, what need not, and what has been tried."""

    enabled: tuple[Move, ...]
    order: tuple[Move, ...]  # in which they are tried
    sleep: dict[Move, Footprint]
    tried: dict[Move, Footprint] = field(default_factory=dict)
    move: Move | None = None

    def choose(self) -> Move | None:
        for move in self.order:
            if move not in self.tried and move not in self.sleep:
                return move
        return None


class Explorer:
    """``run`` explores until everything is covered, a run is wanted no more, or time is up."""

    def __init__(self, stage: Stage, *, reduce: bool = True) -> None:
        self._stage = stage
        self._reduce = reduce
        self._path: list[_Node] = []
        self.tally = Tally()

    async def run(self, ran: Callable[[Ran], bool], going: Callable[[], bool]) -> Tally:
        """Tell ``ran`` of each complete run until it says False; ask ``going`` before each run whether to go on."""
        while going():
            if not await self._once(ran):
                break
            if not self._backtrack():
                self.tally.complete = not self.tally.given_up
                break
        return self.tally

    async def _once(self, ran: Callable[[Ran], bool]) -> bool:
        """One schedule: along the path, then on to the end."""
        for _ in range(MOST_TRIES):
            kept = len(self._path)
            try:
                trace = await self._run_to_end()
                break
            except Diverged:
                self.tally.diverged += 1
                del self._path[kept:]
        else:
            self._give_up()
            return True
        if trace is None:
            self.tally.redundant += 1
            return True
        ending = await self._stage.end()
        done = Ran(tuple(move for move, _ in trace), ending, orders(trace) if self._reduce else 1)
        self._count(done)
        return ran(done)

    def _give_up(self) -> None:
        """Leave the branch that the path points at: it is not covered, never sleeps, and the exploration is not complete."""
        self.tally.given_up += 1
        if self._path:
            node = self._path[-1]
            assert node.move is not None
            node.tried[node.move] = EVERYTHING

    async def _run_to_end(self) -> list[Step] | None:
        """None when the run is redundant."""
        stage, trace = self._stage, list[Step]()
        await stage.begin()
        for node in self._path:
            enabled = tuple(await stage.enabled())
            if enabled != node.enabled:
                raise Diverged(
                    f"after {told(move for move, _ in trace) or 'no move'} there was {told(enabled) or 'no move'} to choose from,"
                    f" and before {told(node.enabled) or 'none'}"
                )
            assert node.move is not None
            touched = await stage.perform(node.move)
            node.tried[node.move] = touched
            trace.append((node.move, touched))
        while enabled := tuple(await stage.enabled()):
            node = _Node(enabled, _longest_still_first(enabled, trace), self._asleep())
            node.move = node.choose()
            if node.move is None:
                return None
            # On the path before it is made: what follows needs its footprint, and a divergence takes it off again.
            touched = await stage.perform(node.move)
            node.tried[node.move] = touched
            self._path.append(node)
            trace.append((node.move, touched))
        return trace

    def _asleep(self) -> dict[Move, Footprint]:
        """The sleep set of the state that the path leads to."""
        if not self._reduce or not self._path:
            return {}
        parent = self._path[-1]
        assert parent.move is not None
        made: Step = (parent.move, parent.tried[parent.move])
        candidates = {**parent.sleep, **{m: f for m, f in parent.tried.items() if m != parent.move}}
        return {move: touched for move, touched in candidates.items() if not dependent((move, touched), made)}

    def _backtrack(self) -> bool:
        """Point the path at the next schedule; False when there is none."""
        while self._path:
            node = self._path[-1]
            node.move = node.choose()
            if node.move is not None:
                return True
            self._path.pop()
        return False

    def _count(self, done: Ran) -> None:
        tally = self.tally
        tally.runs += 1
        tally.interleavings += done.stands_for
        tally.longest = max(tally.longest, len(done.schedule))
        if done.ending.undecided:
            tally.undecided += 1
            tally.why_undecided = tally.why_undecided or done.ending.undecided
        for thread in {move.thread for move in done.schedule}:
            length = sum(1 for move in done.schedule if move.thread == thread)
            tally.lengths[thread] = max(tally.lengths.get(thread, 0), length)


def _longest_still_first(enabled: tuple[Move, ...], trace: list[Step]) -> tuple[Move, ...]:
    """Who has not moved for longest is tried first: what breaks by workers taking turns shows in the first few runs."""
    last = {move.thread: place for place, (move, _) in enumerate(trace)}
    return tuple(sorted(enabled, key=lambda move: last.get(move.thread, -1)))
