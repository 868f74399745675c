"""A few slow jobs make a drain four times as long."""

from fractions import Fraction

import pytest

from harness.capacity.drain import drain
from harness.capacity.mix import SlowClass, Times, mix
from harness.capacity.theory import offered_load, slots_for

SLOW = SlowClass(Fraction("0.05"), Fraction(8))


def test_five_per_cent_of_eight_seconds() -> None:
    times = mix(Times(Fraction("0.8"), Fraction(0)), SLOW)
    assert times.mean_seconds == Fraction("1.16")
    assert float(times.cv2) == pytest.approx(1.830, abs=5e-4)
    load = offered_load(Fraction(12), times.mean_seconds)
    assert load == Fraction("13.92")
    assert slots_for(load, Fraction("0.6")) == 24
    seconds = drain(Fraction(3600), 16 / times.mean_seconds, Fraction(12)).seconds
    assert seconds is not None
    assert float(seconds) == pytest.approx(2007.7, abs=0.05)


def test_without_a_slow_class_nothing_changes() -> None:
    times = Times(Fraction("0.8"))
    assert mix(times, None) is times
    assert times.variance == Fraction("0.64")


def test_a_slow_class_that_is_not_slow_keeps_mean_and_spread() -> None:
    times = Times(Fraction(3), Fraction(2))
    assert mix(times, SlowClass(Fraction(1, 3), Fraction(3))) == times
