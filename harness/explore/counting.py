"""How many orders one trace stands for, and how large a case is.

A trace is a run's moves with their dependence: equal-thread and conflicting moves keep their order, all others may change
places. The orders that it stands for are the linear extensions of that partial order, counted here exactly, so that a
reduced exploration can say "252 of 252 interleavings" without running them.
"""

import math
from collections import Counter
from collections.abc import Sequence

from harness.explore.footprint import Footprint
from harness.explore.schedule import Move

Step = tuple[Move, Footprint]


def dependent(first: Step, second: Step) -> bool:
    """Whether these two keep their order."""
    return first[0].thread == second[0].thread or first[1].conflicts(second[1])


def orders(trace: Sequence[Step]) -> int:
    """The number of linear extensions: schedules that are this trace with independent neighbours swapped."""
    before = [
        sum(1 << earlier for earlier in range(place) if dependent(trace[earlier], trace[place]))
        for place in range(len(trace))
    ]
    # Sets of moves that may stand first, each with the number of ways to get there; one layer per length.
    layer = {0: 1}
    for _ in trace:
        following: Counter[int] = Counter()
        for done, ways in layer.items():
            for place, needed in enumerate(before):
                bit = 1 << place
                if not done & bit and needed & ~done == 0:
                    following[done | bit] += ways
        layer = dict(following)
    return sum(layer.values())


def multinomial(lengths: Sequence[int]) -> int:
    """The interleavings of threads of these lengths, as if nothing were ever blocked."""
    total = math.factorial(sum(lengths))
    for length in lengths:
        total //= math.factorial(length)
    return total
