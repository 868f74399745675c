"""The band around the drain time: known values, and 2,000 simulated outages."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bench import band as bench
from harness.capacity.band import (
    drain_band,
    drain_sd_seconds,
    first_passage_quantile,
    jobs_for_precision,
    judging_window_seconds,
)
from harness.capacity.drain import Inflow, drain, drain_with_inflow

BACKLOG = Fraction(3600)


@pytest.mark.parametrize(
    ("capacity", "cv2", "sd"),
    [
        (Fraction(20), Fraction(1), 16.77),
        (Fraction(20), Fraction(0), 11.86),
        (Fraction(20), Fraction(4), 26.52),
        (Fraction(18), Fraction(1), 24.49),
        (16 / Fraction("1.16"), Fraction("1.8298"), 156.1),
        (Fraction(15), Fraction(0), 44.72),
    ],
)
def test_standard_deviation(capacity: Fraction, cv2: Fraction, sd: float) -> None:
    spread = drain_sd_seconds(drain(BACKLOG, capacity, Fraction(12)), BACKLOG, work_cv2=cv2)
    assert spread == pytest.approx(sd, rel=1e-3)


def test_the_band_of_the_worked_example() -> None:
    band = drain_band(drain(BACKLOG, Fraction(20), Fraction(12)), BACKLOG)
    assert band is not None
    assert band.limits == pytest.approx((417.1, 482.9), abs=0.05)
    assert band.holds(450)
    assert not band.holds(416)
    assert not band.is_skewed


def test_the_skewed_limits_of_a_backlog_that_is_known() -> None:
    band = drain_band(drain(BACKLOG, Fraction(20), Fraction(12)), Fraction(0))
    assert band is not None
    assert band.skewed == pytest.approx((421.3, 480.1), abs=0.05)


def test_a_wide_band_is_judged_by_its_skewed_limits() -> None:
    band = drain_band(drain(BACKLOG, 16 / Fraction("1.16"), Fraction(12)), BACKLOG, work_cv2=Fraction("1.83"))
    assert band is not None
    assert band.is_skewed
    low, high = band.limits
    assert high - band.mean_seconds > band.mean_seconds - low


def test_what_never_drains_has_no_band() -> None:
    assert drain_band(drain(BACKLOG, Fraction(12), Fraction(12)), BACKLOG) is None
    assert drain_band(drain(Fraction(0), Fraction(20), Fraction(12)), Fraction(0)) is None


def test_a_step_that_changes_nothing_leaves_the_spread_alone() -> None:
    steps = (Inflow(Fraction(12), Fraction(100)), Inflow(Fraction(12)))
    stepped = drain_sd_seconds(drain_with_inflow(BACKLOG, Fraction(20), steps), BACKLOG)
    assert stepped == drain_sd_seconds(drain(BACKLOG, Fraction(20), Fraction(12)), BACKLOG)


def test_how_much_of_a_run_it_takes() -> None:
    assert jobs_for_precision(Fraction(20), Fraction(8), Fraction("0.05")) == 7683
    assert judging_window_seconds(Fraction(12), Fraction(20)) == pytest.approx(1.92, abs=0.01)
    assert judging_window_seconds(Fraction(12), Fraction("12.5")) == pytest.approx(376, abs=1)
    assert judging_window_seconds(Fraction(12), Fraction(12)) is None


@given(st.floats(10, 1e5), st.floats(0.001, 0.5), st.floats(0.01, 0.98))
def test_quantiles_rise_and_surround_the_mean(mean: float, relative: float, chance: float) -> None:
    at = first_passage_quantile(mean, mean * relative, chance)
    assert 0 < at < first_passage_quantile(mean, mean * relative, chance + 0.01)
    assert first_passage_quantile(mean, mean * relative, 0.5) <= mean * (1 + 1e-9)


def test_a_first_passage_without_spread_is_its_mean() -> None:
    assert first_passage_quantile(450, 0, 0.025) == 450


def test_simulated_drains_scatter_as_the_band_says() -> None:
    result = bench.run(outages=100)
    assert len(result["cases"]) == 5
    for case in result["cases"]:
        theory, simulated = case["theory"], case["simulated"]
        assert simulated["not_drained"] == 0
        # The mean of a hundred is known to sd/10; a re-run of killed jobs and fresh starts move them by a few seconds more.
        assert abs(simulated["mean_seconds"] - theory["mean_seconds"]) < 0.4 * theory["sd_seconds"] + 4, case
        assert simulated["sd_seconds"] == pytest.approx(theory["sd_seconds"], rel=0.3), case


@pytest.mark.slow
def test_the_band_holds_95_of_100_simulated_outages() -> None:
    result = bench.run(outages=2000)
    assert result["met"], result["cases"]
