"""How long a backlog takes to disappear while work keeps arriving, or that it never does.

The fluid model: backlog B₀ = λN after an outage of N seconds, net drain d = μ − λ, time T = B₀/d. "Never drains" is an
answer (``seconds`` is None), neither an exception nor an infinity.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Inflow:
    """A rate of arrivals that holds for some seconds; None: from then on."""

    per_second: Fraction
    seconds: Fraction | None = None


@dataclass(frozen=True)
class Drain:
    """What becomes of a backlog. ``net_per_second`` is the net drain when it ends (or for ever, when it never does)."""

    backlog_jobs: Fraction
    capacity_per_second: Fraction
    net_per_second: Fraction
    seconds: Fraction | None
    arrived_jobs: Fraction  # while draining; zero when it never ends

    @property
    def never(self) -> bool:
        """The sustained completion rate is not above the arrivals."""
        return self.seconds is None


def backlog_jobs(arrival_per_second: Fraction, outage_seconds: Fraction) -> Fraction:
    """B₀ = λN.

    Assumes: arrivals go on during the outage and nothing completes. Units: jobs/s × s = jobs. Source: fluid model.
    """
    return arrival_per_second * outage_seconds


def drain(backlog: Fraction, capacity_per_second: Fraction, arrival_per_second: Fraction) -> Drain:
    """T = B₀/(μ − λ), never when μ ≤ λ.

    Assumes: constant rates, all slots back at once, B₀ far above the slots. Units: jobs / (jobs/s) = s.
    Source: fluid limit of a multi-server queue; Newell, "Applications of Queueing Theory".
    """
    return drain_with_inflow(backlog, capacity_per_second, (Inflow(arrival_per_second),))


def drain_with_inflow(backlog: Fraction, capacity_per_second: Fraction, inflow: Sequence[Inflow]) -> Drain:
    """Solve ∫(μ − λ(t))dt = B₀ for inflow in steps that count from recovery; the last step holds from then on.

    A step above the capacity lets the backlog grow; never, when the last step leaves no net drain and something is left.
    Assumes: constant capacity. Units: s. Source: fluid model with time-varying input (Newell).
    """
    left, clock, arrived = backlog, Fraction(0), Fraction(0)
    for step in inflow:
        net = capacity_per_second - step.per_second
        if net > 0 and (step.seconds is None or left <= net * step.seconds):
            more = max(left, Fraction(0)) / net
            return Drain(backlog, capacity_per_second, net, clock + more, arrived + step.per_second * more)
        if step.seconds is None:
            return Drain(backlog, capacity_per_second, net, None, Fraction(0))
        left -= net * step.seconds
        arrived += step.per_second * step.seconds
        clock += step.seconds
    raise ValueError("the last step of an inflow must hold from then on")


def wait_of_job_at_recovery(backlog: Fraction, capacity_per_second: Fraction) -> Fraction:
    """B₀/μ: how long the job waits that arrives at the instant of recovery. Often mistaken for the drain time.

    Assumes: FIFO: everything that arrived before it, and nothing after it, is served first. Units: s. Source: fluid FIFO.
    """
    return backlog / capacity_per_second


def rerun_jobs(load: Fraction, slots: int) -> Fraction:
    """Jobs in flight when workers are killed, to be run again: min(a, c) on average.

    Assumes: a steady queue before the outage; no job keeps partial progress. Units: Erlang = jobs. Source: Little (1961).
    """
    return min(load, Fraction(slots))


def start_up_shift_seconds(slots: int, net_per_second: Fraction, work_cv2: Fraction) -> Fraction:
    """(1 − cₛ²)/2·c/d: what T gains because every slot starts a fresh job at recovery.

    Assumes: all slots start at once, B₀ far above c; +1 s for fixed times and 0 for exponential ones in the 16-slot example.
    Units: jobs / (jobs/s) = s. Source: elementary renewal theorem (second-order term).
    """
    return (1 - work_cv2) / 2 * slots / net_per_second


def capacity_for_recovery(
    arrival_per_second: Fraction, outage_seconds: Fraction, recovery_seconds: Fraction
) -> Fraction:
    """μ that is current again in time: λ(1 + N/RTO).

    Assumes: the fluid model with constant inflow. Units: jobs/s. Source: T = λN/(μ − λ), solved for μ.
    """
    return arrival_per_second * (1 + outage_seconds / recovery_seconds)


def slots_for_recovery(
    arrival_per_second: Fraction, work_seconds: Fraction, outage_seconds: Fraction, recovery_seconds: Fraction
) -> int:
    """⌈λS(1 + N/RTO)⌉, S being the slot time of a whole job (retries and overhead in it).

    Assumes: slots are what limits; fluid model. Units: slots. Source: ``capacity_for_recovery`` × S.
    """
    return math.ceil(capacity_for_recovery(arrival_per_second, outage_seconds, recovery_seconds) * work_seconds)


def survivable_outage_seconds(
    capacity_per_second: Fraction, arrival_per_second: Fraction, recovery_seconds: Fraction
) -> Fraction:
    """Longest outage that is made good within the recovery time: RTO(μ − λ)/λ, none (0) when μ ≤ λ.

    Assumes: the fluid model with constant inflow. Units: s. Source: T = λN/(μ − λ), solved for N.
    """
    net = max(capacity_per_second - arrival_per_second, Fraction(0))
    return recovery_seconds * net / arrival_per_second


def must_order(
    capacity_low_per_second: Fraction,
    arrival_high_per_second: Fraction,
    outage_seconds: Fraction,
    recovery_seconds: Fraction,
) -> bool:
    """Order when the measured capacity's lower bound is under λ_high(1 + N/RTO).

    Assumes: both bounds are one-sided at the confidence that is wanted. Units: jobs/s. Source: ``capacity_for_recovery``.
    """
    return capacity_low_per_second < capacity_for_recovery(arrival_high_per_second, outage_seconds, recovery_seconds)
