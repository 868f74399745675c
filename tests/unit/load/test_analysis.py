"""The analysis on runs whose truth is known: drain, overhead, terms, replay, slope."""

import dataclasses

import numpy as np
import pytest

from harness.load import analysis
from harness.load.analysis import _drained_at, analyse


def test_the_measured_drain_is_the_simulated_one(imagine):
    found = analyse(imagine())
    assert found.start_up_seconds == pytest.approx(0.8, abs=0.05)
    assert found.drained_seconds == pytest.approx(found.predicted_seconds, rel=0.1)
    assert found.killed > 0
    assert found.current_seconds > found.drained_seconds


@pytest.mark.parametrize("overhead", [0.001, 0.004, 0.012])
def test_the_overhead_is_found_from_the_beginning_of_the_drain(imagine, overhead):
    found = analyse(imagine(overhead=overhead))
    assert found.rates.overhead_seconds == pytest.approx(overhead, abs=0.0015)


@pytest.mark.parametrize("seed", range(6))
def test_the_replay_explains_a_sound_run_whatever_its_luck(imagine, seed):
    replay = analyse(imagine(seed=seed)).replay
    assert replay.explained
    assert abs(replay.residual) < 0.02


def test_a_system_that_becomes_slower_than_its_parts_is_seen_by_the_replay(imagine):
    slow = imagine(overhead=0.002)
    middle = slow.phases.recovery_began + 0.4 * analyse(slow).drained_seconds
    # From the middle on the same calls are held as long, and each comes later: somebody waits between them.
    late = np.maximum(slow.starts - middle, 0) * 0.25
    attempts = tuple(
        type(each)(
            each.job,
            1,
            each.called + late[each.job],
            each.served + late[each.job],
            each.ended + late[each.job],
            each.status,
        )
        if each.answered and np.isfinite(late[each.job])
        else each
        for each in slow.attempts
    )
    changed = type(slow)(
        **{**vars(slow), "attempts": attempts, "starts": slow.starts + np.where(np.isfinite(late), late, 0)}
    )
    replay = analyse(changed).replay
    assert replay.residual is None or replay.residual > 0.02


def test_terms_add_up_to_the_difference(imagine):
    run = imagine()
    found = analyse(run)
    assert float(found.nominal.seconds) + sum(term.seconds for term in found.terms) == pytest.approx(
        found.drained_seconds
    )
    by_name = {term.name: term.seconds for term in found.terms}
    assert by_name["start-up"] == pytest.approx(0.8, abs=0.05)
    assert by_name["overhead"] > 0
    assert [term.name for term in found.terms][-1] == "chance and the rest"


def test_the_planned_mean_is_that_of_slow_and_quick_jobs_together(imagine):
    run = imagine({"slow": "5%:4s", "retry": "10%"})
    told = {term.name: term.told for term in analyse(run).terms}["service times and retries"]
    assert "instead of 96.0 ms on average" in told  # 0.95 × 80 + 0.05 × 400
    assert told.endswith("attempts per job instead of 1.111")


def test_overhead_is_measured_behind_a_limiter_that_does_not_bind(imagine):
    """16 slots at 80 + 25 ms make 152/s, fewer than the limit of 190/s: predicted without overhead, it would look too slow."""
    run = imagine({"limit": "19/s"}, overhead=0.025)
    found = analyse(run)
    assert found.rates.overhead_seconds == pytest.approx(0.025, rel=0.2)
    assert float(found.realised.capacity_per_second) == pytest.approx(152, rel=0.06)
    assert found.replay.explained
    assert {term.name for term in found.terms} >= {"overhead", "service times and retries"}


def test_a_steady_overhead_is_known_well_and_widens_no_tolerance(imagine):
    found = analyse(imagine())
    assert found.rates.overhead_error_seconds < 0.01 * found.rates.overhead_seconds
    assert found.replay.explained
    assert found.rates.overhead_attempts > 0


def test_an_overhead_that_wanders_near_saturation_would_explain_any_drain_and_counts_as_not_measured(imagine):
    """11 slots make 131/s at first and 122/s later, with 120/s arriving: what is wrong by 1 ms is wrong by half of the drain."""
    found = analyse(imagine({"slots": "11"}, sluggish=0.006))
    assert found.rates.overhead_error_seconds > 0.0003
    assert found.rates.overhead_attempts == 0


@pytest.mark.parametrize(("error", "judged"), [(0.00001, True), (0.0018, False)])
def test_a_residual_within_what_is_known_of_the_overhead_neither_clears_nor_blames(imagine, monkeypatch, error, judged):
    """About 4 % are left over: too much for a known overhead, and nothing to be told with one known to 1.8 ms (11 % of the drain)."""
    monkeypatch.setattr(analysis, "_overhead", lambda *_: (0.0028, error, 1000))
    monkeypatch.setattr(analysis, "MOST_DRAIN_ERROR", 0.5)
    found = analyse(imagine())
    assert found.replay.residual > 0.025
    assert found.replay.explained is False
    assert (found.rates.overhead_attempts > 0) is judged


def test_a_worker_that_is_up_later_is_no_overhead(imagine):
    """The second of two workers makes its first call half a second after the first one's."""
    run = imagine()
    late = run.phases.recovery_began + 0.8 + 0.5
    attempts = tuple(
        dataclasses.replace(each, worker=2) if each.job % 2 and each.called >= late else each
        for each in run.attempts
        if each.called < run.phases.recovery_began or each.ended >= late or each.job % 2 == 0
    )
    found = analyse(dataclasses.replace(run, attempts=attempts))
    assert found.rates.overhead_seconds == pytest.approx(0.004, rel=0.2)


def test_a_limiter_that_binds_is_what_the_capacity_is(imagine):
    found = analyse(imagine({"limit": "15/s"}))
    assert float(found.realised.capacity_per_second) == pytest.approx(150)
    assert found.replay.explained


def test_a_queue_without_net_drain_never_drains(imagine):
    found = analyse(imagine({"slots": "9"}, extra=0))
    assert found.nominal.never
    assert found.drained_seconds is None
    assert found.slope.falls is not True
    assert found.terms == ()


def test_drained_counts_what_is_due_and_unstarted():
    dues, starts = np.array([0.0, 1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.5, 9.5])
    assert _drained_at(dues, starts, 4.0, 10.0, 0) == 7.5
    assert _drained_at(dues, starts, 4.0, 10.0, 1) == 6.0
    assert _drained_at(dues, starts, 8.0, 10.0, 0) == 8.0
    assert _drained_at(dues, np.full(4, np.inf), 4.0, 10.0, 0) is None


def test_the_wait_at_recovery_is_the_number_that_people_mistake_for_the_drain(imagine):
    found = analyse(imagine(start_up=0.0, overhead=0.0))
    assert found.wait_at_recovery_seconds == pytest.approx(7.2, abs=1)
    assert found.drained_seconds == pytest.approx(18, abs=4.5)
