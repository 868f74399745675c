"""The steadiness test: a wandering queue is steady, a growing one is not, and it seldom cries wolf."""

import numpy as np

from harness.capacity.draws import Service, poisson_arrivals
from harness.capacity.simulation import walk
from harness.load.steadiness import judge_steadiness


def unfinished(rate, seconds, slots=16, seed=1, service=0.08):
    """Samples of a simulated queue, ten a second."""
    rng = np.random.default_rng(seed)
    dues = poisson_arrivals(rng, rate, (int(rate * seconds * 1.2), 1))[:, 0]
    path = walk(dues.tolist(), Service(service).draw(rng, (len(dues), 1))[:, 0].tolist(), slots)
    finishes = np.sort(path.finishes)
    return [
        (at, float(np.searchsorted(dues, at) - np.searchsorted(finishes, at)))
        for at in np.arange(seconds / 2, seconds, 0.05)
    ]


def test_a_queue_at_60_percent_is_steady_nearly_always():
    found = [judge_steadiness(unfinished(120, 20, seed=seed)) for seed in range(40)]
    assert sum(each.steady for each in found) >= 38
    assert all(5 < each.mean < 20 for each in found)


def test_a_queue_with_more_arrivals_than_slots_grows():
    found = [judge_steadiness(unfinished(260, 20, seed=seed)) for seed in range(10)]
    assert all(each.grows and not each.steady for each in found)
    assert found[0].slope_per_second == np.float64(found[0].slope_per_second)
    assert 40 < found[0].slope_per_second < 80


def test_a_queue_that_drains_is_not_steady_and_does_not_grow():
    falling = [(n / 10, 200.0 - n) for n in range(100)]
    found = judge_steadiness(falling)
    assert not found.steady
    assert not found.grows


def test_too_few_samples_tell_nothing():
    assert judge_steadiness([(0.0, 1.0)] * 15) is None
