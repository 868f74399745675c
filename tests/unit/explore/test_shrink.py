"""A schedule that breaks something, made smaller without losing what it breaks."""

import asyncio

from harness.explore.schedule import read, told
from harness.explore.shrink import Shrinker, follow
from harness.explore.tree import Ran
from tests.unit.explore.model import Memory


def lost_update(reads, cells):
    """Both of two threads have read the cell before either has added to it."""
    empty = [n for n, seen in enumerate(reads, 1) if seen and seen[0] == () and n in cells.get("a", ())]
    return ("lost_update",) if len(empty) > 1 else ()


PROGRAM = [[("read", "a"), ("add", "b"), ("add", "a"), ("add", "b")]] * 3


def test_what_does_not_matter_is_taken_away_and_the_first_to_move_is_worker_1():
    stage = Memory(PROGRAM, judge=lost_update)
    schedule = read("w3w1w2w1w3w2w1w2w1w3w2w3")

    async def shrink():
        made, ending = await follow(stage, schedule, strict=True)
        assert ending.findings == ("lost_update",)
        return await Shrinker(stage, within_seconds=30).shrink(Ran(made, ending, 1))

    smallest = asyncio.run(shrink())
    assert smallest.ending.findings == ("lost_update",)
    assert len(smallest.schedule) == 6
    assert {move.number for move in smallest.schedule} == {1, 2}
    assert told(smallest.schedule).startswith("w1")


def test_impossible_moves_are_left_out_unless_strict():
    stage = Memory([[("add", "a")]])
    made, _ = asyncio.run(follow(stage, read("w1w1w2")))
    assert told(made) == "w1"
