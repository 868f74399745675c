"""A recorded run walked again: bad luck is explained by its own draws, a slow system is not."""

import numpy as np
import pytest

from harness.capacity.draws import Service, poisson_arrivals
from harness.capacity.replay import Trace, replay
from harness.capacity.simulation import Attempt, Job, Outage, walk_attempts

OUTAGE = Outage(20.0, 120.0)


def recorded(seed: int, overhead: float) -> Trace:
    rng = np.random.default_rng(seed)
    dues = poisson_arrivals(rng, 12.0, (5000, 1))[:, 0].tolist()
    seconds = Service(0.8).draw(rng, (5000, 1))[:, 0].tolist()
    jobs = [Job(due, (Attempt(held),)) for due, held in zip(dues, seconds, strict=True)]
    rng.shuffle(jobs)  # a record is in the order of completion, not of arrival
    return Trace(jobs, 16, OUTAGE, overhead_seconds=overhead)


def test_a_run_that_is_its_parts_has_no_residual() -> None:
    trace = recorded(1, 0.003)
    measured = replay(trace, None).replayed_seconds
    again = replay(trace, measured)
    assert again.residual == 0
    assert again.explained is True


def test_an_unlucky_sample_is_explained_and_a_slow_system_is_not() -> None:
    trace = recorded(2, 0.0)
    slower = walk_attempts(
        sorted(trace.jobs, key=lambda job: job.due_seconds), 16, outages=(OUTAGE,), overhead_seconds=0.04
    )
    judged = replay(trace, slower.drain_seconds())
    assert judged.residual is not None
    assert judged.residual > 0.05
    assert judged.explained is False


def test_two_per_cent_and_a_sample_are_forgiven() -> None:
    trace = recorded(3, 0.0)
    seconds = replay(trace, None).replayed_seconds
    assert seconds is not None
    assert replay(trace, seconds * 1.019).explained is True
    assert replay(trace, seconds * 1.021).explained is False
    assert replay(trace, seconds * 1.021, sampling_seconds=1.0).explained is True


@pytest.mark.parametrize("measured", [None, 10.0])
def test_what_never_ended_is_not_judged(measured: float | None) -> None:
    endless = Trace([Job(float(n), (Attempt(5.0),)) for n in range(50)], 1, OUTAGE)
    judged = replay(endless, measured)
    assert judged.replayed_seconds is None
    assert judged.residual is None
    assert judged.explained is None
