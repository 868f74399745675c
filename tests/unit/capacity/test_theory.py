"""Slots and Erlang's formulas against known values."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity import theory

LOAD = theory.offered_load(Fraction(12), Fraction("0.8"))


def test_the_worked_example_needs_16_slots_where_floats_say_17() -> None:
    assert Fraction("9.6") == LOAD
    assert theory.slots_for(LOAD, Fraction("0.6")) == 16
    assert math.ceil(12 * 0.8 / 0.6) == 17
    assert theory.capacity_per_second(16, Fraction("0.8")) == 20


def test_erlang_c_is_exact_for_fractions() -> None:
    assert theory.erlang_c(3, Fraction(2)) == Fraction(4, 9)


@pytest.mark.parametrize(
    ("slots", "chance", "wait"),
    [(16, 0.0418671, 0.00523339), (10, 0.859080, 1.71816), (11, 0.573434, 0.327677), (12, 0.368842, 0.122947)],
)
def test_erlang_c_and_its_wait_at_the_load_of_the_example(slots: int, chance: float, wait: float) -> None:
    assert float(theory.erlang_c(slots, LOAD)) == pytest.approx(chance, rel=1e-5)
    seconds = theory.mean_wait_seconds(slots, LOAD, Fraction("0.8"))
    assert seconds is not None
    assert float(seconds) == pytest.approx(wait, rel=1e-5)


def test_waiting_jobs_and_the_tail_of_the_wait() -> None:
    jobs = theory.mean_waiting_jobs(16, LOAD)
    assert jobs is not None
    assert float(jobs) == pytest.approx(0.0628007, rel=1e-5)
    longer = theory.chance_to_wait_longer(16, LOAD, Fraction("0.8"), Fraction(1, 2))
    assert longer == pytest.approx(7.668e-4, rel=1e-3)


def test_a_queue_that_never_settles_has_no_mean_wait() -> None:
    assert theory.erlang_c(9, LOAD) == 1
    assert theory.mean_wait_seconds(9, LOAD, Fraction(1)) is None
    assert theory.mean_waiting_jobs(9, LOAD) is None
    assert theory.chance_to_wait_longer(9, LOAD, Fraction(1), Fraction(5)) == 1


def test_one_slot_is_the_textbook_queue() -> None:
    # M/M/1 at half load waits S·ρ/(1 − ρ) = S; fixed times wait half of that (Pollaczek-Khinchine, exact for one slot).
    wait = theory.mean_wait_seconds(1, Fraction(1, 2), Fraction(3))
    assert wait == 3
    assert theory.estimated_wait_seconds(wait, Fraction(1), Fraction(0)) == Fraction(3, 2)


@given(st.integers(1, 40), st.fractions(min_value="0.1", max_value=30, max_denominator=20))
def test_more_slots_never_make_waiting_likelier(slots: int, load: Fraction) -> None:
    fewer, more = theory.erlang_c(slots, load), theory.erlang_c(slots + 1, load)
    assert 0 < more <= fewer <= 1
    assert theory.erlang_b(slots, load) <= fewer


@given(
    st.fractions(min_value="0.1", max_value=1000, max_denominator=50),
    st.fractions(min_value="0.1", max_value="0.98", max_denominator=50),
)
def test_slots_are_the_fewest_that_keep_the_busy_ratio(load: Fraction, busy: Fraction) -> None:
    slots = theory.slots_for(load, busy)
    assert load / slots <= busy
    assert slots == 1 or load / (slots - 1) > busy


def test_thousands_of_slots_are_counted_in_floats() -> None:
    assert 0 < theory.erlang_c(5000, 4900.0) < 1
