"""Schedules drawn by a seed: the same again, and as likely to find a violation as was published."""

import asyncio

import pytest

from harness.explore.sampling import Chance, Sampler
from harness.explore.schedule import told
from tests.unit.explore.model import Memory


def sample(stage, runs, seed):
    ran = []

    def keep(each):
        ran.append(told(each.schedule))
        return len(ran) < runs

    tally = asyncio.run(Sampler(stage, seed, moves=6).run(keep, lambda: True))
    return tally, ran


def test_the_same_seed_draws_the_same_schedules():
    program = [[("add", "a")] * 3] * 3
    assert sample(Memory(program), 30, 7)[1] == sample(Memory(program), 30, 7)[1]
    assert sample(Memory(program), 30, 7)[1] != sample(Memory(program), 30, 8)[1]


def test_a_violation_of_depth_two_is_found_as_often_as_promised():
    """Thread 2 must run to its end between two operations of thread 1: one ordering more than a priority gives."""
    program = [[("read", "a"), ("read", "a")], [("add", "a")]]

    def judge(reads, cells):
        return ("torn",) if reads[0] == [(), (2,)] else ()

    async def draw(runs):
        torn = 0
        for seed in range(runs):
            found = []
            sampler = Sampler(Memory(program, judge=judge), seed, moves=3, depth=2)
            await sampler.run(lambda each, found=found: bool(found.append(each)), lambda: True)
            torn += bool(found[0].ending.findings)
        return torn / runs

    assert asyncio.run(draw(2000)) == pytest.approx(Chance(2, 2, 3, 1).per_run, abs=0.03)  # the bound is tight here


def test_the_bound_is_what_was_published():
    chance = Chance(depth=3, threads=2, moves=10, runs=100)
    assert chance.per_run == pytest.approx(1 / 200)
    assert chance.overall == pytest.approx(1 - (1 - 1 / 200) ** 100)
