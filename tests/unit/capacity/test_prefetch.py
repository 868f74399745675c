"""What a batch does inside one worker."""

from fractions import Fraction

from harness.capacity.prefetch import LocalWait, local_wait


def test_a_batch_of_ten() -> None:
    assert local_wait(10, Fraction("0.8")) == LocalWait(Fraction("3.6"), Fraction("7.2"), Fraction(8))


def test_one_job_at_a_time_waits_for_nobody() -> None:
    assert local_wait(1, Fraction("0.8")) == LocalWait(Fraction(0), Fraction(0), Fraction("0.8"))


def test_a_hundred_wait_forty_seconds() -> None:
    assert local_wait(100, Fraction("0.8")).mean_seconds == Fraction("39.6")
