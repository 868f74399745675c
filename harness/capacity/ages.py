"""The age of the oldest runnable job during an outage and while the backlog drains, and who waits how long.

Age means now − the earliest due time of what is due and not started: never of future retries, never of running jobs.
"""

from collections.abc import Sequence
from fractions import Fraction

from harness.capacity.drain import Inflow


def oldest_age_seconds(
    outage_seconds: Fraction,
    capacity_per_second: Fraction,
    arrival_per_second: Fraction,
    after_recovery_seconds: Fraction,
) -> Fraction:
    """Age u seconds after recovery: N − u(μ − λ)/λ, and zero from the end of the drain on.

    Before recovery (u < 0) it is the time since the outage began. Assumes: FIFO, fluid, constant rates. Units: s.
    Source: the oldest job at u is the one that arrived when λt = μu.
    """
    if after_recovery_seconds < 0:
        return max(outage_seconds + after_recovery_seconds, Fraction(0))
    fall = after_recovery_seconds * (capacity_per_second - arrival_per_second) / arrival_per_second
    return max(outage_seconds - fall, Fraction(0))


def oldest_age_with_inflow(
    outage_seconds: Fraction,
    capacity_per_second: Fraction,
    outage_arrival_per_second: Fraction,
    inflow: Sequence[Inflow],
    after_recovery_seconds: Fraction,
    *,
    at_once_jobs: Fraction = Fraction(0),
) -> Fraction:
    """The same for inflow in steps from recovery on: the arrival time t with A(t) = μu + b, seen from now.

    ``at_once_jobs`` b pass at recovery (tokens saved). Assumes: FIFO, fluid; the backlog has not been empty yet (afterwards
    zero). Units: s. Source: cumulative curves (Newell).
    """
    served = capacity_per_second * after_recovery_seconds + at_once_jobs
    steps = (Inflow(outage_arrival_per_second, outage_seconds), *inflow)
    began = Fraction(0)
    now = outage_seconds + after_recovery_seconds
    for step in steps:
        if step.seconds is None or served <= step.per_second * step.seconds:
            return max(now - began - served / step.per_second, Fraction(0))
        served -= step.per_second * step.seconds
        began += step.seconds
    raise ValueError("the last step of an inflow must hold from then on")


def wait_of_arrival_seconds(
    outage_seconds: Fraction,
    capacity_per_second: Fraction,
    arrival_per_second: Fraction,
    arrived_after_outage_began_seconds: Fraction,
) -> Fraction:
    """Wait of the job that arrives τ after the outage began: N − τ(1 − λ/μ); 180 s at recovery in the example.

    Assumes: FIFO, fluid, constant rates, capacity above the arrivals. Units: s. Source: it starts when μu = λτ.
    """
    gain = arrived_after_outage_began_seconds * (1 - arrival_per_second / capacity_per_second)
    return max(outage_seconds - gain, Fraction(0))


def seconds_until_age(
    outage_seconds: Fraction, capacity_per_second: Fraction, arrival_per_second: Fraction, age_seconds: Fraction
) -> Fraction | None:
    """Time after recovery until the oldest age is below A: (N − A)λ/(μ − λ); None: never.

    Assumes: FIFO, fluid, constant rates. Units: s. Source: ``oldest_age_seconds`` solved for u.
    """
    net = capacity_per_second - arrival_per_second
    if age_seconds >= outage_seconds:
        return Fraction(0)
    return None if net <= 0 else (outage_seconds - age_seconds) * arrival_per_second / net


def jobs_that_wait_longer(
    outage_seconds: Fraction, capacity_per_second: Fraction, arrival_per_second: Fraction, wait_seconds: Fraction
) -> Fraction | None:
    """How many jobs wait more than x: λ(N − x)/(1 − λ/μ); None: all from then on, for ever.

    Assumes: FIFO, fluid, constant rates. Units: jobs. Source: ``wait_of_arrival_seconds`` solved for τ, times λ.
    """
    if wait_seconds >= outage_seconds:
        return Fraction(0)
    if capacity_per_second <= arrival_per_second:
        return None
    slack = 1 - arrival_per_second / capacity_per_second
    return arrival_per_second * (outage_seconds - wait_seconds) / slack
