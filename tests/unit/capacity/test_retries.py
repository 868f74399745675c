"""Retries: 600 s, never, dead letters, timeouts, and the attempts that an outage burns."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity.drain import drain
from harness.capacity.draws import Service, work
from harness.capacity.mix import Times
from harness.capacity.retries import Backoff, Burnt, Retries, burnt_attempts
from harness.contracts.problem import BadInput

SERVICE = Times(Fraction("0.8"))


def drained(retries: Retries, overhead: Fraction = Fraction(0)) -> float | None:
    seconds = drain(Fraction(3600), 16 / retries.work(SERVICE, overhead).mean_seconds, Fraction(12)).seconds
    return None if seconds is None else float(seconds)


@pytest.mark.parametrize(
    ("retries", "seconds"),
    [
        (Retries(), 450),
        (Retries(Fraction("0.1")), 600),
        (Retries(Fraction("0.1"), 25), 600),
        (Retries(Fraction("0.1"), 5), 599.982),
        (Retries(Fraction("0.3"), 5), 1769.8),
        (Retries(Fraction("0.4")), None),
        (Retries(Fraction("0.1"), None, Fraction(2)), 985.7),
    ],
)
def test_drain_with_retries(retries: Retries, seconds: float | None) -> None:
    assert drained(retries) == (None if seconds is None else pytest.approx(seconds, abs=0.05))


@pytest.mark.parametrize(("overhead_ms", "seconds"), [(5, 457.1), (20, 479.2), (40, 510.8)])
def test_overhead_of_the_database_counts_for_every_attempt(overhead_ms: int, seconds: float) -> None:
    assert drained(Retries(), Fraction(overhead_ms, 1000)) == pytest.approx(seconds, abs=0.05)
    twice = Retries(Fraction(1, 2)).work(SERVICE, Fraction(overhead_ms, 1000))
    assert twice.mean_seconds == 2 * (SERVICE.mean_seconds + Fraction(overhead_ms, 1000))


def test_attempts_and_dead_letters() -> None:
    retries = Retries(Fraction("0.3"), 5)
    assert float(20 / retries.attempts_per_job) == pytest.approx(14.034, abs=5e-4)
    assert retries.dead_share == Fraction("0.3") ** 5
    assert Retries.critical_share(Fraction(12), Fraction(20)) == Fraction("0.4")
    assert Retries.critical_share(Fraction(12), Fraction(10)) == 0
    timeouts = Retries(Fraction("0.1"), None, Fraction(2)).work(SERVICE)
    assert float(timeouts.mean_seconds) == pytest.approx(1.0222, abs=5e-5)


def test_an_exponential_job_retried_for_ever_is_exponential_again() -> None:
    assert Retries(Fraction("0.1")).work(SERVICE).cv2 == 1


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_mean_and_spread_of_a_whole_job_are_those_of_drawn_ones(attempts: int) -> None:
    job = Retries(Fraction("0.3"), attempts).work(Times(Fraction("0.8"), Fraction(4)))
    drawn = work(
        np.random.default_rng(1), Service(0.8, "lognormal", 4.0), (200, 1000), failure_share=0.3, max_attempts=attempts
    )
    assert drawn.mean() == pytest.approx(float(job.mean_seconds), rel=0.02)
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(float(job.cv2), rel=0.1)


@given(st.fractions(min_value=0, max_value="0.9", max_denominator=30), st.integers(1, 30))
def test_many_attempts_come_close_to_endless_ones_from_below(share: Fraction, attempts: int) -> None:
    few, endless = Retries(share, attempts), Retries(share)
    assert 1 <= few.attempts_per_job <= endless.attempts_per_job == 1 / (1 - share)
    assert few.work(SERVICE).mean_seconds <= endless.work(SERVICE).mean_seconds
    assert few.work(SERVICE).cv2 >= 0
    timeouts = Retries(share, attempts, SERVICE.mean_seconds)
    assert timeouts.work(SERVICE).mean_seconds == few.work(SERVICE).mean_seconds


def test_an_outage_of_the_dependency_burns_nine_attempts() -> None:
    assert burnt_attempts(Fraction(300), Backoff()) == Burnt(9, 10, Fraction(211))
    capped = burnt_attempts(Fraction(300), Backoff(cap_seconds=Fraction(30)))
    assert capped.late_seconds <= 30
    assert capped.attempts > 9


@pytest.mark.parametrize(("share", "attempts"), [(1, None), (-1, None), (0, 0), (0, 1001)])
def test_impossible_retries_are_refused(share: int, attempts: int | None) -> None:
    with pytest.raises(BadInput):
        Retries(Fraction(share), attempts)


@pytest.mark.parametrize(("first", "factor", "cap"), [(0, 2, None), (1, 0, None), (1, 2, 0)])
def test_an_impossible_backoff_is_refused(first: int, factor: int, cap: int | None) -> None:
    with pytest.raises(BadInput):
        Backoff(Fraction(first), Fraction(factor), None if cap is None else Fraction(cap))
