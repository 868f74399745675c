"""What the explorer promises of real workers: every order, a small counterexample, and the same again each time."""

import asyncio
import subprocess

import pytest

from harness.bench.explore import find_isolationtester
from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.contracts.verdict import Verdict
from harness.explore.case import Case
from harness.explore.face import as_data
from harness.explore.run import Exploration, Options, Report, options_of
from harness.explore.schedule import read
from harness.explore.shrink import follow
from harness.explore.tree import Explorer
from harness.explore.workers import WorkerStage

REPLAYS = 20


def _exploration(grounds, folder, options, use):
    async def run():
        async with grounds(folder) as (ground, recorder):
            return await use(Exploration(ground, recorder, options, "my-queue"))

    return asyncio.run(run())


def test_a_double_claim_is_found_shrunk_told_and_replayed(grounds, two_steps):
    folder = two_steps("blind")
    options = Options(budget_seconds=60, cases=(Case(workers=3, jobs=2),))

    async def explore(exploration):
        return await exploration.run(lambda _: None)

    (explored,) = _exploration(grounds, folder, options, explore)
    found = explored.violation
    assert explored.verdict is Verdict.FAIL
    assert set(found.invariants) == {"one_owner", "no_double_execution"}
    assert (found.workers, found.jobs, found.moves) == (2, 1, 4)
    assert sum(line.startswith("*") for line in found.story) >= 2
    assert found.replay.endswith(f"--replay {found.schedule}")
    assert f"permutation {' '.join(f'w{m.number}_{n}' for n, m in enumerate(read(found.schedule), 1))}" in found.spec
    assert "update task set state = 'running'" in found.spec
    assert "$1" not in found.spec
    data = as_data(Report("blind", "here", (explored,), (), 1.0, 0))
    assert data["cases"][0]["violation"]["schedule"] == found.schedule


def test_a_counterexample_replays_to_the_same_violation_every_time(stages, two_steps):
    async def replay():
        async with stages(two_steps("blind"), Case(polls=9)) as stage:
            return [await follow(stage, read("w1w2w2w1"), strict=True) for _ in range(REPLAYS)]

    endings = asyncio.run(replay())
    assert [set(ending.findings) for _, ending in endings] == [{"one_owner", "no_double_execution"}] * REPLAYS


def test_a_stale_complete_is_found_with_one_leases_end(stages, pasted):
    done = "set state = 'done', worker = null, lease_until = null\nwhere id = %(id)s"
    folder = pasted(
        "unfenced", complete=(f"{done} and state = 'running' and worker = %(worker)s and version = %(token)s", done)
    )

    async def explore():
        found = []
        async with stages(folder, Case(expiries=1, polls=0)) as stage:
            await Explorer(stage).run(lambda ran: not (ran.ending.findings and found.append(ran) is None), lambda: True)
        return found

    (ran,) = asyncio.run(explore())
    assert "no_stale_write" in ran.ending.findings
    assert sum(move.thread == "e1" for move in ran.schedule) == 1


def test_a_killed_worker_and_a_lost_reply_are_moves_too(stages, pasted):
    async def follow_both():
        async with stages(pasted("sound"), Case(kills=1, severs=1, polls=2)) as stage:
            severed = await follow(stage, read("s1w2w2"))
            killed = await follow(stage, read("w1k1w2"))
            again = await follow(stage, read("w1w1w1w2"), strict=True)
            return severed, killed, again

    (_, severed), (killed_moves, killed), (_, again) = asyncio.run(follow_both())
    for ending in (severed, killed, again):
        assert not ending.findings
    kinds = {entry.what.__class__.__name__ for entry in severed.detail.entries}
    assert {"Reached", "FaultLanded"} <= kinds
    assert "k1" in map(str, killed_moves)
    assert "WorkerExited" in {entry.what.__class__.__name__ for entry in killed.detail.entries}


def test_what_is_explored_leaves_nothing_behind(grounds, pasted):
    async def explore():
        async with grounds(pasted("sound")) as (ground, recorder):
            async with WorkerStage(ground, recorder, Case()) as stage:
                await follow(stage, read("w1w1"))
                lab = stage.lab
            async with WorkerStage(ground, recorder, Case()) as stage:
                tables = await stage.lab.execute(
                    "select (select count(*) from task), (select count(*) from queueproof.truth)"
                )
            return lab.closing, tables

    closed, tables = asyncio.run(explore())
    assert closed
    assert tables == [(0, 0)]


def test_a_replay_says_itself_what_happens():
    with pytest.raises(BadInput, match="--workers"):
        options_of({"workers": 2, "jobs": None}, "60s", "w1", 0)
    with pytest.raises(BadInput, match="--budget"):
        options_of({}, "soon", "", 0)
    assert options_of({"jobs": 2, "expiries": 1}, "500ms", "", 0).cases == (Case(jobs=2, expiries=1, polls=0),)


def test_the_exported_spec_shows_the_double_claim_in_isolationtester(grounds, two_steps, cluster):
    try:
        program = find_isolationtester()
    except EnvironmentFailed as missing:
        pytest.skip(str(missing))

    async def export(exploration):
        return await exploration.replay(read("w1w2w2w1"))

    found = _exploration(grounds, two_steps("blind"), Options(), export)
    address = asyncio.run(cluster.create_database("spec"))
    try:
        done = subprocess.run(
            [program, address.dsn()], input=found.spec, capture_output=True, text=True, timeout=60, check=True
        )
    finally:
        asyncio.run(cluster.drop_database("spec"))
    assert done.stdout.count("update task set state = 'running'") == 2
    assert done.stdout.count("(1 row)") == 4, done.stdout
