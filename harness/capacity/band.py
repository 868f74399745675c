"""How far chance moves a drain time: the band around the fluid answer, and how much of a run it takes to judge one.

Backlog while draining is a diffusion with drift −d and variance cₐ²λ + cₛ²μ per second; the drain time is its first passage to
zero from a random B₀. Arrivals and work are taken as independent and identically distributed; FIFO or not makes no
difference to T. These are the only floats of the theory: a band is no place for exact arithmetic.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from harness.capacity.drain import Drain

CONFIDENCE = 0.95
SKEWED_FROM = 0.05  # sd relative to T; beyond it the right tail is visibly longer than the left one


@dataclass(frozen=True)
class Band:
    """Where one run's drain time falls with ``confidence``. The skewed limits are inverse-Gaussian quantiles."""

    mean_seconds: float
    sd_seconds: float
    confidence: float
    normal: tuple[float, float]
    skewed: tuple[float, float]

    @property
    def is_skewed(self) -> bool:
        """The two pairs differ enough to prefer the skewed one."""
        return self.sd_seconds > SKEWED_FROM * self.mean_seconds

    @property
    def limits(self) -> tuple[float, float]:
        """The pair to judge by."""
        return self.skewed if self.is_skewed else self.normal

    def holds(self, seconds: float) -> bool:
        """Whether a measured drain time is what chance alone would do."""
        low, high = self.limits
        return low <= seconds <= high


def drain_sd_seconds(
    drain: Drain, outage_arrivals_jobs: Fraction, arrival_cv2: Fraction = Fraction(1), work_cv2: Fraction = Fraction(1)
) -> float | None:
    """√(cₐ²(λN + λT) + cₛ²μT)/d; for constant rates = √(cₐ²λN/d² + B₀(cₐ²λ + cₛ²μ)/d³). None: never drains.

    ``work_cv2`` is that of a whole job's slot time (retries in it); 0 when a steady rate limit binds instead of slots.
    Assumes: i.i.d. arrivals and work, B₀ far above the slots. Units: s. Source: variance of the first passage time of a
    Brownian motion with drift (Cox & Miller 1965), with a random start.
    """
    if drain.seconds is None or drain.net_per_second <= 0:
        return None
    arrivals = arrival_cv2 * (outage_arrivals_jobs + drain.arrived_jobs)
    departures = work_cv2 * drain.capacity_per_second * drain.seconds
    return math.sqrt(arrivals + departures) / float(drain.net_per_second)


def drain_band(
    drain: Drain,
    outage_arrivals_jobs: Fraction,
    arrival_cv2: Fraction = Fraction(1),
    work_cv2: Fraction = Fraction(1),
    confidence: float = CONFIDENCE,
) -> Band | None:
    """The band around T. None: never drains (or there is nothing to drain).

    Assumes and source: see ``drain_sd_seconds``. Units: s.
    """
    sd = drain_sd_seconds(drain, outage_arrivals_jobs, arrival_cv2, work_cv2)
    if sd is None or not drain.seconds:
        return None
    mean = float(drain.seconds)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * sd
    tail = (1 - confidence) / 2
    skewed = (first_passage_quantile(mean, sd, tail), first_passage_quantile(mean, sd, 1 - tail))
    return Band(mean, sd, confidence, (max(mean - reach, 0.0), mean + reach), skewed)


def first_passage_quantile(mean: float, sd: float, chance: float) -> float:
    """Quantile of the inverse-Gaussian distribution with this mean and sd (shape = mean³/sd²), by bisection.

    Assumes: 0 < chance < 1. Units: those of ``mean``. Source: Chhikara & Folks (1989) for the distribution function.
    """
    if sd == 0:
        return mean
    shape = mean * (mean / sd) ** 2
    low, high = 0.0, mean
    while _first_passage_chance(high, mean, shape) < chance:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        if _first_passage_chance(middle, mean, shape) < chance:
            low = middle
        else:
            high = middle
    return high


def jobs_for_precision(
    capacity_per_second: Fraction, net_per_second: Fraction, relative: Fraction, confidence: float = CONFIDENCE
) -> int:
    """Backlog that lets one run tell T to ± ``relative``: B₀ ≥ (z/r)²·2μ/d (over R runs: a R-th of it each).

    Assumes: Poisson arrivals, exponential work (relative variance of T = (2μ/d)/B₀), d > 0. Units: jobs. Source: Band.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil((z / float(relative)) ** 2 * 2 * float(capacity_per_second / net_per_second))


def judging_window_seconds(
    arrival_per_second: Fraction,
    capacity_per_second: Fraction,
    arrival_cv2: Fraction = Fraction(1),
    work_cv2: Fraction = Fraction(1),
    confidence: float = CONFIDENCE,
) -> float | None:
    """How long a drift must be watched before it stands out from noise: w > z²(cₐ²λ + cₛ²μ)/d². None: no drift.

    Assumes: as Band; close to critical the window is minutes, so such a run is undecided rather than failed. Units: s.
    Source: z-test of the mean of a Brownian motion with drift.
    """
    net = float(capacity_per_second - arrival_per_second)
    if net == 0:
        return None
    noise = float(arrival_cv2 * arrival_per_second + work_cv2 * capacity_per_second)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return z**2 * noise / net**2


def _first_passage_chance(at: float, mean: float, shape: float) -> float:
    if at <= 0:
        return 0.0
    scale = math.sqrt(shape / at)
    below, above = scale * (at / mean - 1), scale * (at / mean + 1)
    # The textbook's second term is exp(2·shape/mean)·P(Z > above): one overflows and the other underflows for any real backlog.
    # As above² − below² = 4·shape/mean, it is also exp(−below²/2) times the tail scaled by exp(above²/2).
    return 0.5 * math.erfc(-below / math.sqrt(2)) + math.exp(-below * below / 2) * _scaled_tail(above)


def _scaled_tail(z: float) -> float:
    """exp(z²/2)·P(Z > z) for z ≥ 0; the asymptotic series once the factors get near the ends of what a float can hold."""
    if z < 25:
        return math.exp(z * z / 2) * 0.5 * math.erfc(z / math.sqrt(2))
    return (1 - 1 / z**2 + 3 / z**4 - 15 / z**6) / (z * math.sqrt(2 * math.pi))
