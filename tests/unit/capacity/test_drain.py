"""The fluid drain: 450 s, never, and what follows from it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity import drain as d
from harness.capacity.theory import capacity_per_second

BACKLOG = d.backlog_jobs(Fraction(12), Fraction(300))
POSITIVE = st.fractions(min_value="0.05", max_value=200, max_denominator=40)


def test_the_worked_example_drains_in_450_seconds_not_180() -> None:
    result = d.drain(BACKLOG, Fraction(20), Fraction(12))
    assert BACKLOG == 3600
    assert result.net_per_second == 8
    assert result.seconds == 450
    assert result.arrived_jobs == 5400
    assert d.wait_of_job_at_recovery(BACKLOG, Fraction(20)) == 180


@pytest.mark.parametrize("capacity", [12, 11, 1])
def test_a_capacity_that_is_not_above_the_arrivals_never_drains(capacity: int) -> None:
    result = d.drain(BACKLOG, Fraction(capacity), Fraction(12))
    assert result.never
    assert result.seconds is None


def test_killed_jobs_run_again() -> None:
    again = d.rerun_jobs(Fraction("9.6"), 16)
    assert d.drain(BACKLOG + again, Fraction(20), Fraction(12)).seconds == Fraction("451.2")
    assert d.drain(BACKLOG + again - 16, Fraction(20), Fraction(12)).seconds == Fraction("449.2")
    assert d.rerun_jobs(Fraction(20), 16) == 16


@pytest.mark.parametrize(("cv2", "shift"), [(0, 1), (1, 0), (4, -3)])
def test_slots_that_all_start_afresh_shift_the_drain(cv2: int, shift: int) -> None:
    assert d.start_up_shift_seconds(16, Fraction(8), Fraction(cv2)) == shift


def test_inflow_that_changes_after_recovery() -> None:
    steps = (d.Inflow(Fraction(12), Fraction(150)), d.Inflow(Fraction(18)))
    result = d.drain_with_inflow(BACKLOG, Fraction(20), steps)
    assert result.seconds == 1350
    assert result.arrived_jobs == 12 * 150 + 18 * 1200


def test_inflow_may_exceed_the_capacity_for_a_while() -> None:
    steps = (d.Inflow(Fraction(30), Fraction(60)), d.Inflow(Fraction(12)))
    assert d.drain_with_inflow(BACKLOG, Fraction(20), steps).seconds == 60 + Fraction(3600 + 600) / 8


def test_a_last_step_without_net_drain_is_never_unless_it_was_over_before() -> None:
    for_ever = d.Inflow(Fraction(20))
    assert d.drain_with_inflow(BACKLOG, Fraction(20), (d.Inflow(Fraction(12), Fraction(449)), for_ever)).never
    assert d.drain_with_inflow(BACKLOG, Fraction(20), (d.Inflow(Fraction(12), Fraction(450)), for_ever)).seconds == 450


def test_an_inflow_that_ends_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="hold from then on"):
        d.drain_with_inflow(BACKLOG, Fraction(20), (d.Inflow(Fraction(12), Fraction(1)),))


def test_ordering_numbers() -> None:
    assert d.survivable_outage_seconds(Fraction(20), Fraction(12), Fraction(600)) == 400
    assert d.survivable_outage_seconds(Fraction(10), Fraction(12), Fraction(600)) == 0
    slots = [d.slots_for_recovery(Fraction(12), Fraction("0.8"), Fraction(300), Fraction(rto)) for rto in (450, 180)]
    assert slots == [16, 26]
    assert d.must_order(Fraction("19.9"), Fraction(12), Fraction(300), Fraction(450))
    assert not d.must_order(Fraction(20), Fraction(12), Fraction(300), Fraction(450))


@given(POSITIVE, POSITIVE, POSITIVE, st.integers(1, 200))
def test_more_slots_drain_sooner_and_never_means_no_net_drain(
    arrival: Fraction, service: Fraction, outage: Fraction, slots: int
) -> None:
    backlog = d.backlog_jobs(arrival, outage)
    fewer = d.drain(backlog, capacity_per_second(slots, service), arrival)
    more = d.drain(backlog, capacity_per_second(slots + 1, service), arrival)
    assert fewer.never == (fewer.net_per_second <= 0)
    if fewer.seconds is not None:
        assert more.seconds is not None
        assert more.seconds < fewer.seconds


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_an_outage_that_is_just_survived_takes_just_the_recovery_time(
    arrival: Fraction, extra: Fraction, recovery: Fraction, cut: Fraction
) -> None:
    capacity = arrival + extra
    outage = d.survivable_outage_seconds(capacity, arrival, recovery)
    assert d.drain(d.backlog_jobs(arrival, outage), capacity, arrival).seconds == recovery
    steps = (d.Inflow(arrival, cut), d.Inflow(arrival))  # a step that changes nothing changes nothing
    assert d.drain_with_inflow(d.backlog_jobs(arrival, outage), capacity, steps).seconds == recovery
