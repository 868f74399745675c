"""Plans of drills: the same seed makes the same plan, and each step can still land while those before it are on."""

from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.problem import BadInput
from harness.faults import discover
from harness.lab.inflow import fates_told
from harness.run.drill_plan import COMPOSED, LONGEST_HOLD_SECONDS, MOST_AT_ONCE, Step, planned, struck, thrown

FAULTS = discover()
SEEDS = st.integers(0, 10**9)


@given(SEEDS, st.integers(1, 5))
def test_the_same_seed_makes_the_same_plan(seed: int, workers: int) -> None:
    plan = thrown(FAULTS, seed, workers)
    assert plan == thrown(FAULTS, seed, workers)
    assert 1 <= len(plan.steps) <= MOST_AT_ONCE
    assert 0 <= plan.hold_seconds <= LONGEST_HOLD_SECONDS
    assert all(0 <= step.victim < workers for step in plan.steps)
    assert len({step.fault.strikes for step in plan.steps}) == len(plan.steps)


@given(SEEDS, st.integers(1, 5))
def test_a_random_plan_is_played_again_by_its_names_seed_and_hold(seed: int, workers: int) -> None:
    plan = thrown(FAULTS, seed, workers)
    assert planned(FAULTS, plan.names, plan.seed, workers, plan.hold_seconds) == plan


@given(st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=4), SEEDS)
def test_the_server_falls_last_and_what_needs_results_comes_first(names: list[str], seed: int) -> None:
    steps = planned(FAULTS, names, seed, 3).steps
    assert sorted(step.fault.name for step in steps) == sorted(names)
    strikes = [step.fault.strikes for step in steps]
    assert "server" not in strikes[: len(strikes) - strikes.count("server")]
    results = [step.fault.needs_results for step in steps]
    assert results == sorted(results, reverse=True)
    assert steps[0].after_seconds == 0


@given(SEEDS)
def test_a_name_that_stands_twice_strikes_two_workers(seed: int) -> None:
    first, second = planned(FAULTS, ["worker_paused", "worker_paused"], seed, 2).steps
    assert first.victim != second.victim


def test_the_usual_compositions_exist() -> None:
    for names in COMPOSED:
        assert planned(FAULTS, names, 1, 3).steps


def test_every_stranger_is_named() -> None:
    with pytest.raises(BadInput) as refused:
        planned(FAULTS, ["worker_kiled", "sink_down", "x"], 1, 3)
    assert len(refused.value.mistakes) == 2


@dataclass(frozen=True)
class Wire:
    open: bool = True


@dataclass(frozen=True)
class Worker:
    number: int
    running: bool = True
    sessions: tuple[Wire, ...] = (Wire(),)


@pytest.mark.parametrize(
    ("fault", "workers", "meant", "number"),
    [
        ("worker_paused", [Worker(1), Worker(2)], 1, 2),
        ("worker_paused", [Worker(1), Worker(2, running=False)], 1, 1),
        ("worker_paused", [Worker(1), Worker(2, sessions=())], 1, 2),
        ("connection_severed", [Worker(1), Worker(2, sessions=())], 1, 1),
        ("connection_severed", [Worker(1, sessions=(Wire(open=False),)), Worker(2), Worker(3)], 0, 2),
        ("connection_severed", [Worker(1, running=False), Worker(2, sessions=())], 0, 2),
        ("connection_severed", [Worker(1, running=False), Worker(2, running=False)], 1, 2),
    ],
)
def test_a_fault_strikes_one_that_it_can_strike(fault: str, workers: list[Worker], meant: int, number: int) -> None:
    assert struck(Step(FAULTS[fault], meant, 0.0), cast("Any", workers)).number == number


def test_a_fault_strikes_one_that_is_busy_before_the_one_that_is_meant() -> None:
    workers = cast("Any", [Worker(1), Worker(2), Worker(3, running=False)])
    assert struck(Step(FAULTS["worker_paused"], 0, 0.0), workers, {2, 3}).number == 2
    assert struck(Step(FAULTS["worker_paused"], 0, 0.0), workers, {3}).number == 1


def test_a_silence_is_held_past_the_lease_unless_a_time_is_given() -> None:
    assert planned(FAULTS, ["worker_paused"], 1, 3, lease_seconds=30).hold_seconds == 45
    assert planned(FAULTS, ["worker_paused"], 1, 3, lease_seconds=0.5).hold_seconds == 3
    assert planned(FAULTS, ["worker_paused"], 1, 3, 0.1, lease_seconds=30).hold_seconds == 0.1
    assert planned(FAULTS, ["sink_down"], 1, 3, lease_seconds=30).hold_seconds < 30


def test_what_became_of_the_jobs_is_told_the_done_ones_first() -> None:
    assert fates_told(["dead", "done", "dead", "paused", "done", "done"]) == "3 done, 2 dead, 1 paused"
    assert fates_told([]) == ""
