"""The verdict, part by part: each is made to fail alone, and an invalid run is never green."""

import dataclasses

import numpy as np
import pytest

from harness.contracts.verdict import Verdict
from harness.load.analysis import Slope, analyse
from harness.load.measured import RECOVERY, STEADY
from harness.load.producing import Produced
from harness.load.steadiness import Steadiness
from harness.load.table import Ended
from harness.load.verdict import conclude, judge


def samples_with(run, phase, columns):
    """The samples, with these values in one phase and those of an idle machine in the others."""
    idle = {"foreign_cores": 0.0, "cpu_percent": 10.0, "loop_lag_ms": 1.0}
    there = run.samples["phase"] == phase
    return run.samples.assign(**{name: there.map({True: value, False: idle[name]}) for name, value in columns.items()})


def parts_of(run):
    return {part.name: part for part in judge(run, analyse(run))}


def verdict_of(run):
    return conclude(judge(run, analyse(run)))


def test_a_sound_run_holds_in_every_part(imagine):
    run = imagine()
    assert {name: part.verdict for name, part in parts_of(run).items() if part.verdict is not Verdict.PASS} == {}
    assert verdict_of(run)[0] is Verdict.PASS


def test_a_late_producer_makes_the_run_invalid_not_the_queue_broken(imagine):
    run = imagine()
    late = Produced(run.produced.job, run.produced.due, run.produced.due + 0.2, run.produced.due + 0.3)
    verdict, reason = verdict_of(dataclasses.replace(run, produced=late))
    assert verdict is Verdict.INCONCLUSIVE
    assert "the producer was late" in reason


def test_lag_while_the_database_is_stopped_on_purpose_is_no_lag(imagine):
    run = imagine({"outage_of": "database"})
    lag = np.where((run.dues > run.phases.outage_began) & (run.dues < run.phases.recovery_began), 10.0, 0.002)
    lag = lag[: run.produced.count]
    late = Produced(run.produced.job, run.produced.due, run.produced.due + lag, run.produced.due + lag)
    assert parts_of(dataclasses.replace(run, produced=late))["valid_run"].verdict is Verdict.PASS


def test_a_lost_job_is_a_fail_even_in_an_invalid_run(imagine):
    run = imagine()
    run = dataclasses.replace(run, ended=run.ended[1:], strangers=3)
    verdict, reason = verdict_of(run)
    assert verdict is Verdict.FAIL
    assert "load-7-00000000" in reason


def test_a_queue_that_deletes_what_is_done_has_lost_only_what_had_no_effect(imagine):
    run = imagine()
    effects = run.effects.copy()
    gone = dataclasses.replace(run, ended=(), deletes=True, effects=effects)
    started = np.isfinite(run.starts[: run.produced.count])
    kept = tuple(Ended(f"load-7-{n:08d}", "running", 1) for n in np.flatnonzero(~started))
    assert parts_of(dataclasses.replace(gone, ended=kept))["nothing_lost"].verdict is Verdict.PASS
    effects[5] = 0
    assert parts_of(dataclasses.replace(gone, ended=kept, effects=effects))["nothing_lost"].verdict is Verdict.FAIL


def test_two_effects_of_one_job_are_a_fail(imagine):
    run = imagine()
    effects = run.effects.copy()
    effects[9] = 2
    assert verdict_of(dataclasses.replace(run, effects=effects))[0] is Verdict.FAIL


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("accounted", -1.0, "a state that the mapping does not name"),
        ("acknowledged_before", 1e9, "fewer jobs than had been acknowledged"),
        ("acknowledged_after", -1.0, "more jobs than were due"),
    ],
)
def test_counts_that_do_not_add_up_make_the_run_invalid(imagine, column, value, told):
    run = imagine()
    part = parts_of(dataclasses.replace(run, samples=run.samples.assign(**{column: value})))["valid_run"]
    assert part.verdict is Verdict.INCONCLUSIVE
    assert told in part.reason


def test_a_stuck_head_fails_although_throughput_is_met(imagine):
    run = imagine(extra=8.0)
    looks = tuple(
        dataclasses.replace(
            look, oldest_unfinished=0, oldest_unfinished_age=look.at, unfinished=max(look.unfinished, 1)
        )
        for look in run.looks
    )
    samples = run.samples.assign(table_oldest_unfinished="load-7-00000000")
    stuck = dataclasses.replace(run, looks=looks, samples=samples)
    verdict, reason = verdict_of(stuck)
    assert verdict is Verdict.FAIL
    assert "load-7-00000000" in reason
    assert "mean throughput hides it" in reason


def test_a_job_that_was_at_the_head_for_a_moment_is_not_stuck(imagine):
    run = imagine(extra=8.0)
    last = len(run.looks) - 1
    looks = (*run.looks[:-1], dataclasses.replace(run.looks[last], oldest_unfinished=3, oldest_unfinished_age=2.0))
    samples = run.samples.assign(table_oldest_unfinished="load-7-00000003")
    assert parts_of(dataclasses.replace(run, looks=looks, samples=samples))["oldest_job_moves"].verdict is Verdict.PASS


def test_never_steady_is_broken_when_it_grew_and_unclear_when_it_wandered(imagine):
    run = imagine()
    for grows, expected in ((True, Verdict.FAIL), (False, Verdict.INCONCLUSIVE)):
        run.phases.warm_up = Steadiness(steady=False, grows=grows, mean=100, slope_per_second=5, told="100 jobs")
        assert parts_of(run)["current_again"].verdict is expected


def test_a_run_that_ended_while_the_backlog_fell_is_undecided(imagine):
    run = imagine()
    cut = run.phases.recovery_began + 12
    run.phases.ended, run.phases.current_at = cut, None
    looks = tuple(look for look in run.looks if look.at <= cut)
    parts = parts_of(dataclasses.replace(run, looks=looks))
    assert parts["current_again"].verdict is Verdict.INCONCLUSIVE
    assert parts["backlog_falls"].verdict is Verdict.PASS
    assert parts["drain_replayed"].verdict is Verdict.INCONCLUSIVE


def test_a_backlog_that_grows_fails(imagine):
    run = imagine({"slots": "9"}, extra=0)
    run.phases.current_at = None
    assert parts_of(run)["backlog_falls"].verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)
    assert verdict_of(run)[0] is not Verdict.PASS


@pytest.mark.parametrize(
    ("slope", "told"),
    [
        (
            Slope(-99.4, -106.8, -92.0, 10.0),
            "never drains: the backlog grew by 99.4 jobs/s over 10.0 s (95 %: 92.0 to 106.8)",
        ),
        (Slope(7.0, 5.0, 9.0, 10.0), "the backlog fell by 7.0 jobs/s over 10.0 s (95 %: 5.0 to 9.0)"),
        (Slope(-1.0, -3.0, 1.0, 10.0), "undecided: the backlog grew by 1.0 jobs/s over 10.0 s (95 %: -1.0 to 3.0)"),
    ],
)
def test_a_slope_and_its_interval_are_told_in_one_direction(imagine, slope, told):
    run = imagine()
    parts = judge(run, dataclasses.replace(analyse(run), slope=slope))
    (falls,) = [part for part in parts if part.name == "backlog_falls"]
    assert falls.reason.startswith(told)


def test_a_worker_that_left_makes_the_run_invalid(imagine):
    assert verdict_of(dataclasses.replace(imagine(), left=("2 became 1",)))[0] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("columns", "ours"),
    [
        ({"foreign_cores": 0.9, "cpu_percent": 99.0}, False),
        ({"foreign_cores": 0.9, "cpu_percent": 60.0}, True),
        ({"foreign_cores": 0.2, "cpu_percent": 99.0}, True),
        ({"loop_lag_ms": 500.0}, False),
    ],
)
def test_a_machine_that_others_use_up_excuses_a_fail_and_spoils_no_pass(imagine, columns, ours):
    run = imagine()
    run = dataclasses.replace(run, samples=samples_with(run, RECOVERY, columns))
    assert (parts_of(run)["machine_was_ours"].verdict is Verdict.PASS) is ours
    verdict, reason = verdict_of(run)
    assert verdict is Verdict.PASS
    assert ours or "although" in reason
    run.phases.warm_up = Steadiness(steady=False, grows=True, mean=100, slope_per_second=5, told="100 jobs")
    verdict, reason = verdict_of(run)
    assert verdict is (Verdict.FAIL if ours else Verdict.INCONCLUSIVE)
    assert ours or "however" in reason


@pytest.mark.parametrize("columns", [{"foreign_cores": 0.9, "cpu_percent": 99.0}, {"loop_lag_ms": 500.0}])
def test_a_steady_phase_on_a_machine_that_others_used_up_is_no_yardstick(imagine, columns):
    run = imagine()
    run = dataclasses.replace(run, samples=samples_with(run, STEADY, columns))
    assert parts_of(run)["current_again"].verdict is Verdict.INCONCLUSIVE
    verdict, reason = verdict_of(run)
    assert verdict is Verdict.INCONCLUSIVE
    assert "no yardstick" in reason


def test_a_busy_machine_excuses_no_lost_job(imagine):
    run = imagine()
    run = dataclasses.replace(run, ended=run.ended[1:], samples=run.samples.assign(loop_lag_ms=500.0))
    assert verdict_of(run)[0] is Verdict.FAIL
