"""A stage in memory: threads of operations on named cells, with locks, whose every order can be run in microseconds."""

from harness.explore.footprint import EVERYTHING, Footprint
from harness.explore.schedule import step
from harness.explore.stage import Ending


class Memory:
    """Each operation is ("read" | "add", cell). ``broken`` judges the outcome: what each thread read, and the cells."""

    def __init__(self, threads, *, judge=lambda reads, cells: (), honest=True):
        self.threads = threads
        self.judge = judge
        self.honest = honest
        self.runs = 0
        self.outcomes = set()

    async def begin(self):
        self.at = [0] * len(self.threads)
        self.cells = {}
        self.reads = [[] for _ in self.threads]

    async def enabled(self):
        return [step(n) for n, thread in enumerate(self.threads, 1) if self.at[n - 1] < len(thread)]

    async def perform(self, move):
        n = move.number - 1
        kind, cell = self.threads[n][self.at[n]]
        self.at[n] += 1
        if kind == "read":
            self.reads[n].append(self.cells.get(cell, ()))
            touched = Footprint(frozenset({("row", cell)}), frozenset())
        else:
            self.cells[cell] = (*self.cells.get(cell, ()), move.number)
            touched = Footprint(frozenset(), frozenset({("row", cell)}))
        return touched if self.honest else EVERYTHING

    async def end(self):
        self.runs += 1
        outcome = (tuple(map(tuple, self.reads)), tuple(sorted(self.cells.items())))
        self.outcomes.add(outcome)
        return Ending(tuple(self.judge(self.reads, self.cells)))
