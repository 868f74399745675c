"""Schedules: sorted, reproducible, at the rate that was asked for."""

import numpy as np
import pytest

from harness.contracts.problem import BadInput
from harness.load.plan import read_plan
from harness.load.schedule import due_times

WORDS = {"arrival": "100/s", "service": "0.1s", "slots": "16", "outage": "10s"}


def plan(**more):
    return read_plan(**(WORDS | more))


def test_the_same_seed_makes_the_same_schedule_and_another_seed_another():
    assert np.array_equal(due_times(plan(), 20, 1), due_times(plan(), 20, 1))
    assert not np.array_equal(due_times(plan(), 20, 1)[:100], due_times(plan(), 20, 2)[:100])


@pytest.mark.parametrize("kind", ["poisson", "even"])
def test_enough_jobs_at_the_rate(kind):
    dues = due_times(plan(arrivals=kind, time_scale="2"), 60, 5)
    assert dues[-1] >= 60
    assert np.all(np.diff(dues) >= 0)
    assert np.searchsorted(dues, 60) == pytest.approx(12_000, rel=0.04)


def test_a_ramp_changes_its_rate_evenly_and_then_keeps_it():
    dues = due_times(plan(arrival="150/s", arrivals="ramp:50/s:150/s:40s"), 100, 3)
    count = np.histogram(dues, [0, 10, 30, 40, 90])[0]
    assert count == pytest.approx([625, 2000, 1375, 7500], rel=0.1)
    assert np.all(np.diff(dues) >= 0)


def test_a_recorded_trace_repeats_its_gaps(tmp_path):
    file = tmp_path / "times.txt"
    file.write_text("10\n11\n13\n")
    dues = due_times(plan(arrival="40/min", arrivals=f"trace:{file}"), 9, 1)
    assert dues[:5] == pytest.approx([0, 1, 3, 4.5, 5.5])


@pytest.mark.parametrize("text", ["", "1\n", "a\nb\n", "1\nnan\n"])
def test_a_trace_that_cannot_be_read_is_named(tmp_path, text):
    file = tmp_path / "times.txt"
    file.write_text(text)
    with pytest.raises(BadInput, match="arrivals"):
        due_times(plan(arrivals=f"trace:{file}"), 9, 1)


def test_a_run_of_too_many_jobs_is_refused():
    with pytest.raises(BadInput, match="arrival"):
        due_times(plan(arrival="1000000/s"), 600, 1)
