"""When each job is due: intended times that do not depend on how the system copes, made before the run begins.

This is what makes arrivals open: a stall delays no arrival, it only makes the producer late, and that is measured.
"""

import numpy as np
from numpy.typing import NDArray

from harness.capacity.draws import even_arrivals, poisson_arrivals
from harness.contracts.problem import BadInput
from harness.load.plan import LoadPlan
from harness.load.recorded import read_recorded, span_seconds

Times = NDArray[np.float64]
MOST_JOBS = 5_000_000


def due_times(plan: LoadPlan, run_seconds: float, seed: int) -> Times:
    """Seconds from the run's beginning, sorted, enough for ``run_seconds`` of the run (which is compressed already)."""
    rate = float(plan.arrival_per_second * plan.time_scale)
    most = max(rate, float(plan.lasting_per_second * plan.time_scale))
    count = int(most * run_seconds * 1.05 + 6 * (most * run_seconds) ** 0.5) + 10
    if count > MOST_JOBS:
        raise BadInput(
            f"arrival: the run may take {run_seconds:.0f} s and would make {count} jobs, more than {MOST_JOBS};"
            " give --at-most, or a lower rate"
        )
    rng = np.random.default_rng(seed)
    if plan.arrivals == "even":
        return even_arrivals(rate, (count, 1))[:, 0]
    if plan.arrivals == "trace":
        return _recorded(plan, run_seconds)
    unit = poisson_arrivals(rng, 1.0, (count, 1))[:, 0]  # in expected jobs: a time change makes any rate of it
    if plan.ramp is None:
        return unit / rate
    return _ramped(
        unit,
        rate,
        most_rate=float(plan.ramp.to_per_second * plan.time_scale),
        seconds=float(plan.ramp.seconds / plan.time_scale),
    )


def _ramped(unit: Times, rate: float, most_rate: float, seconds: float) -> Times:
    """The inverse of the expected count: t·rate + t²·growth/2 while the rate changes, a straight line afterwards."""
    growth = (most_rate - rate) / seconds
    through = (rate + most_rate) / 2 * seconds
    if growth == 0:
        return unit / rate
    during = (np.sqrt(np.maximum(rate**2 + 2 * growth * np.minimum(unit, through), 0.0)) - rate) / growth
    after = seconds + (unit - through) / most_rate
    return np.where(unit <= through, during, after)


def _recorded(plan: LoadPlan, run_seconds: float) -> Times:
    """Gaps of a recorded trace, over and over until the run is long enough."""
    assert plan.trace_file is not None
    times = read_recorded(plan.trace_file) / float(plan.time_scale)
    span = span_seconds(times)
    rounds = int(run_seconds / span) + 1
    if rounds * len(times) > MOST_JOBS:
        raise BadInput(f"arrivals: {plan.trace_file}: the run would make more than {MOST_JOBS} jobs; give --at-most")
    return np.concatenate([times + n * span for n in range(rounds)])
