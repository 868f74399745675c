"""Sleep sets lose nothing: on ten small subjects the reduced runs find what all orders find, and stand for exactly as many."""

import asyncio

import pytest

from harness.explore.case import Case
from harness.explore.tree import Explorer

UNLOCKED = ("    for update skip locked\n))\nreturning", "))\nreturning")
GREEDY = ("where state = 'pending' or (state = 'running' and lease_until <= now())", "where state <> 'done'")
DONE = "set state = 'done', worker = null, lease_until = null\nwhere "
FENCE = " and state = 'running' and worker = %(worker)s and version = %(token)s"
UNFENCED = (f"{DONE}id = %(id)s{FENCE}", f"{DONE}id = %(id)s")
SWEEPING = (f"{DONE}id = %(id)s{FENCE}", f"{DONE}state = 'running' and %(id)s::bigint is not null")
NO_TOKEN = (" version = version + 1,", "")

SUBJECTS = {
    "sound, one job": ({}, Case()),
    "sound, two jobs": ({}, Case(jobs=2)),
    "unlocked": ({"claim": UNLOCKED}, Case(jobs=2)),
    "greedy": ({"claim": GREEDY}, Case(surplus=0)),
    "unfenced": ({"complete": UNFENCED}, Case(expiries=1, polls=0)),
    "sweeping": ({"complete": SWEEPING}, Case(jobs=2)),
    "without a token": ({"claim": NO_TOKEN}, Case()),
}
WORKERS = {"blind": Case(), "checked": Case(), "across_call": Case()}


async def _explore(stages, folder, case, *, reduce):
    found = set()
    async with stages(folder, case) as stage:

        def ran(each):
            found.update(each.ending.findings)
            return True

        tally = await Explorer(stage, reduce=reduce).run(ran, lambda: True)
    assert tally.complete, tally
    return tally, found


def _compare(stages, folder, case):
    full, everything = asyncio.run(_explore(stages, folder, case, reduce=False))
    few, found = asyncio.run(_explore(stages, folder, case, reduce=True))
    assert found == everything
    assert few.interleavings == full.runs
    assert few.runs <= full.runs
    return found


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_reduced_set_finds_what_the_full_one_finds(name, stages, pasted):
    changes, case = SUBJECTS[name]
    found = _compare(stages, pasted("subject", **changes), case)
    assert bool(found) is (name in {"greedy", "unfenced", "sweeping"}), found


@pytest.mark.parametrize("how", WORKERS)
def test_it_does_for_workers_of_several_requests(how, stages, two_steps):
    found = _compare(stages, two_steps(how), WORKERS[how])
    assert bool(found) is (how != "checked"), found
