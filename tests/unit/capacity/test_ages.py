"""The oldest runnable job falls along a line, and reaches zero when the drain does."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity import ages
from harness.capacity.drain import Inflow, drain, drain_with_inflow

OUTAGE, CAPACITY, ARRIVAL = Fraction(300), Fraction(20), Fraction(12)
POSITIVE = st.fractions(min_value="0.1", max_value=100, max_denominator=20)


@pytest.mark.parametrize(
    ("after", "age"), [(-100, 200), (0, 300), ("112.5", 225), (225, 150), ("337.5", 75), (450, 0), (900, 0)]
)
def test_the_line_of_the_worked_example(after: str, age: int) -> None:
    assert ages.oldest_age_seconds(OUTAGE, CAPACITY, ARRIVAL, Fraction(after)) == age


def test_who_waits_how_long() -> None:
    assert ages.wait_of_arrival_seconds(OUTAGE, CAPACITY, ARRIVAL, Fraction(0)) == 300
    assert ages.wait_of_arrival_seconds(OUTAGE, CAPACITY, ARRIVAL, OUTAGE) == 180
    assert ages.seconds_until_age(OUTAGE, CAPACITY, ARRIVAL, Fraction(60)) == 360
    assert ages.jobs_that_wait_longer(OUTAGE, CAPACITY, ARRIVAL, Fraction(60)) == 7200


def test_an_age_that_never_falls() -> None:
    assert ages.seconds_until_age(OUTAGE, ARRIVAL, ARRIVAL, Fraction(60)) is None
    assert ages.jobs_that_wait_longer(OUTAGE, ARRIVAL, ARRIVAL, Fraction(60)) is None
    assert ages.seconds_until_age(OUTAGE, ARRIVAL, ARRIVAL, Fraction(300)) == 0
    assert ages.jobs_that_wait_longer(OUTAGE, ARRIVAL, ARRIVAL, Fraction(300)) == 0
    assert ages.oldest_age_seconds(OUTAGE, Fraction(6), ARRIVAL, Fraction(100)) == 350


@given(POSITIVE, POSITIVE, POSITIVE, st.fractions(min_value=0, max_value=1, max_denominator=16))
def test_age_starts_at_the_outage_and_ends_with_the_drain(
    outage: Fraction, arrival: Fraction, extra: Fraction, part: Fraction
) -> None:
    capacity = arrival + extra
    seconds = drain(arrival * outage, capacity, arrival).seconds
    assert seconds is not None
    assert ages.oldest_age_seconds(outage, capacity, arrival, Fraction(0)) == outage
    assert ages.oldest_age_seconds(outage, capacity, arrival, seconds) == 0
    straight = ages.oldest_age_seconds(outage, capacity, arrival, seconds * part)
    assert straight == outage * (1 - part)
    assert ages.oldest_age_with_inflow(outage, capacity, arrival, (Inflow(arrival),), seconds * part) == straight


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_age_reaches_zero_with_the_drain_when_the_inflow_changes(
    outage: Fraction, arrival: Fraction, extra: Fraction, hold: Fraction
) -> None:
    steps = (Inflow(arrival * 2, hold), Inflow(arrival))
    result = drain_with_inflow(arrival * outage, arrival + extra, steps)
    assert result.seconds is not None
    assert ages.oldest_age_with_inflow(outage, arrival + extra, arrival, steps, result.seconds) == 0


def test_saved_tokens_make_the_oldest_job_younger_at_once() -> None:
    age = ages.oldest_age_with_inflow(
        OUTAGE, Fraction(15), ARRIVAL, (Inflow(ARRIVAL),), Fraction(0), at_once_jobs=Fraction(60)
    )
    assert age == 295
    with pytest.raises(ValueError, match="hold from then on"):
        ages.oldest_age_with_inflow(OUTAGE, CAPACITY, ARRIVAL, (), Fraction(300))
