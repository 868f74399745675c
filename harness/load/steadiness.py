"""Is the queue steady? Tested on the number of unfinished jobs, which in a steady queue wanders around a mean and goes nowhere.

Batch means, because neighbouring samples are alike: the slope over the batches must not stand out from their scatter, nor
matter against their mean.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

BATCHES = 8
T_LIMIT = 2.45  # Student's t, 6 degrees of freedom, 95 %
MATTERS = 0.5  # of the mean, over the whole window
SLACK_JOBS = 2.0


@dataclass(frozen=True)
class Steadiness:
    """What the test found. ``grows`` only when the slope is upwards, stands out and matters."""

    steady: bool
    grows: bool
    mean: float
    slope_per_second: float
    told: str


def judge_steadiness(samples: Sequence[tuple[float, float]]) -> Steadiness | None:
    """Samples of (seconds, unfinished jobs), in order; None when there are too few to tell."""
    if len(samples) < 2 * BATCHES:
        return None
    size = len(samples) / BATCHES
    means, times = [], []
    for n in range(BATCHES):
        part = samples[int(n * size) : int((n + 1) * size)]
        times.append(sum(at for at, _ in part) / len(part))
        means.append(sum(value for _, value in part) / len(part))
    middle, mean = sum(times) / BATCHES, sum(means) / BATCHES
    spread = sum((at - middle) ** 2 for at in times)
    slope = sum((at - middle) * (value - mean) for at, value in zip(times, means, strict=True)) / spread
    scatter = sum((value - mean - slope * (at - middle)) ** 2 for at, value in zip(times, means, strict=True))
    error = math.sqrt(scatter / (BATCHES - 2) / spread)
    moved = abs(slope) * (samples[-1][0] - samples[0][0])
    stands_out = abs(slope) > T_LIMIT * error
    matters = moved > MATTERS * mean + SLACK_JOBS
    told = f"{mean:.1f} unfinished jobs on average, moving by {slope:+.2f}/s (± {T_LIMIT * error:.2f})"
    return Steadiness(not (stands_out and matters), slope > 0 and stands_out and matters, mean, slope, told)
