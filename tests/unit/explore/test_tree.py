"""The reduced tree of schedules reaches every outcome of the whole one."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.explore.counting import multinomial
from harness.explore.schedule import told
from harness.explore.stage import Diverged
from harness.explore.tree import MOST_TRIES, Explorer
from tests.unit.explore.model import Memory

operation = st.tuples(st.sampled_from(["read", "add"]), st.sampled_from(["a", "b", "*"]))
programs = st.one_of(
    st.lists(st.lists(operation, min_size=1, max_size=4), min_size=2, max_size=2),
    st.lists(st.lists(operation, min_size=1, max_size=2), min_size=3, max_size=3),
)


def explore(stage, *, reduce):
    ran = []

    def keep(each):
        ran.append(each)
        return True

    tally = asyncio.run(Explorer(stage, reduce=reduce).run(keep, lambda: True))
    return tally, ran


@given(programs)
@settings(max_examples=60, deadline=None)
def test_the_reduced_runs_reach_every_outcome_and_stand_for_every_order(program):
    full, reduced = Memory(program), Memory(program)
    all_runs, _ = explore(full, reduce=False)
    few, ran = explore(reduced, reduce=True)
    assert reduced.outcomes == full.outcomes
    assert all_runs.complete
    assert few.complete
    assert few.interleavings == all_runs.runs == multinomial([len(thread) for thread in program])
    assert len({told(each.schedule) for each in ran}) == few.runs


@given(programs)
@settings(max_examples=20, deadline=None)
def test_who_admits_everything_is_not_reduced(program):
    tally, _ = explore(Memory(program, honest=False), reduce=True)
    assert tally.runs == multinomial([len(thread) for thread in program])
    assert not tally.redundant


def test_independent_threads_need_one_run():
    tally, _ = explore(Memory([[("add", "a")] * 5, [("add", "b")] * 5]), reduce=True)
    assert (tally.runs, tally.interleavings) == (1, 252)


def test_it_stops_when_told_to_and_is_not_complete_then():
    stage = Memory([[("add", "a")] * 2] * 2)
    tally = asyncio.run(Explorer(stage).run(lambda _: False, lambda: True))
    assert tally.runs == 1
    assert not tally.complete


class Moody(Memory):
    """From a certain run on, the first thread loses its last operation when the second has moved first."""

    async def enabled(self):
        moves = await super().enabled()
        if self.runs >= 1 and self.at == [1, 1]:
            return moves[1:]
        return moves


def test_moves_that_lead_elsewhere_are_tried_again_then_left_and_never_called_complete():
    tally, _ = explore(Moody([[("add", "a")] * 2] * 2), reduce=False)
    assert tally.diverged >= MOST_TRIES
    assert tally.given_up >= 1
    assert not tally.complete


def test_a_divergence_that_passes_does_no_harm():
    class Once(Memory):
        hiccups = 1

        async def perform(self, move):
            if self.runs == 1 and self.hiccups:
                self.hiccups -= 1
                raise Diverged("a worker stumbled")
            return await super().perform(move)

    tally, _ = explore(Once([[("add", "a")] * 2] * 2), reduce=False)
    assert (tally.runs, tally.diverged, tally.complete) == (6, 1, True)
