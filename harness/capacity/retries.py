"""What failures cost: attempts per job, slot time per job, dead letters, and how backoff meets an outage."""

from dataclasses import dataclass
from fractions import Fraction

from harness.capacity.mix import Times
from harness.contracts.problem import BadInput

MOST_ATTEMPTS = 1000


@dataclass(frozen=True)
class Retries:
    """Each attempt fails with ``failure_share`` p, independently; a job gets ``max_attempts`` m (None: no end).

    ``failure_seconds``: how long a failed attempt holds its slot (a timeout); None: as long as one that succeeds.
    """

    failure_share: Fraction = Fraction(0)
    max_attempts: int | None = None
    failure_seconds: Fraction | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.failure_share < 1:
            raise BadInput(f"retry: {float(self.failure_share):g} must be from 0 on and below 1")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise BadInput(f"max_attempts: {self.max_attempts} must be from 1 to {MOST_ATTEMPTS}")

    @property
    def attempts_per_job(self) -> Fraction:
        """E[A] = (1 − p^m)/(1 − p).

        Assumes: independent failures. Unit: attempts. Source: mean of a truncated geometric distribution.
        """
        return (1 - self.dead_share) / (1 - self.failure_share)

    @property
    def dead_share(self) -> Fraction:
        """p^m: the share of jobs that fail at every attempt and end as dead letters; 0 when attempts never end.

        Assumes: independent failures. Unit: a share. Source: m failures in a row.
        """
        return Fraction(0) if self.max_attempts is None else self.failure_share**self.max_attempts

    def work(self, attempt: Times, overhead_seconds: Fraction = Fraction(0)) -> Times:
        """Slot time of a whole job, all attempts and the database's share of each: E[A]((1 − p)S + pS_f + h), with its spread.

        Assumes: attempts are independent; a timeout lasts exactly ``failure_seconds``; waiting for a retry holds no slot.
        Units: s. Source: Wald for the mean; the variance by conditioning on the number of failures.
        """
        good = Times(attempt.mean_seconds + overhead_seconds)
        bad_mean = attempt.mean_seconds if self.failure_seconds is None else self.failure_seconds
        bad = Times(bad_mean + overhead_seconds)
        bad_variance = attempt.variance if self.failure_seconds is None else Fraction(0)
        p, lives = self.failure_share, 1 - self.dead_share
        failures = p * self.attempts_per_job
        mean = failures * bad.mean_seconds + lives * good.mean_seconds
        own_spread = failures * bad_variance + lives * attempt.variance
        return Times(mean, (own_spread + self._spread_of_count(bad.mean_seconds, good.mean_seconds, mean)) / mean**2)

    def _spread_of_count(self, bad: Fraction, good: Fraction, mean: Fraction) -> Fraction:
        """Variance of (failures × bad + success × good) that comes from how many failures there are."""
        p = self.failure_share
        if self.max_attempts is None:
            return bad**2 * p / (1 - p) ** 2
        total, chance = Fraction(0), 1 - p
        for failures in range(self.max_attempts):
            total += chance * (failures * bad + good) ** 2
            chance *= p
        return total + self.dead_share * (self.max_attempts * bad) ** 2 - mean**2

    @staticmethod
    def critical_share(arrival_per_second: Fraction, capacity_per_second: Fraction) -> Fraction:
        """1 − λ/μ: from this share of failing attempts on, endless retries mean that the backlog never drains.

        Assumes: failures last as long as successes, attempts never end. Unit: a share. Source: μ(1 − p) = λ.
        """
        return max(1 - arrival_per_second / capacity_per_second, Fraction(0))


@dataclass(frozen=True)
class Backoff:
    """The wait before the n-th retry: first·factor^(n−1), at most ``cap_seconds``."""

    first_seconds: Fraction = Fraction(1)
    factor: Fraction = Fraction(2)
    cap_seconds: Fraction | None = None

    def __post_init__(self) -> None:
        if self.first_seconds <= 0 or self.factor < 1 or (self.cap_seconds is not None and self.cap_seconds <= 0):
            raise BadInput("backoff: the first wait and the cap must be above zero, and the factor 1 or more")

    def wait_seconds(self, retry: int) -> Fraction:
        """Before retry 1, 2, 3, …"""
        wait = self.first_seconds * self.factor ** (retry - 1)
        return wait if self.cap_seconds is None else min(wait, self.cap_seconds)


@dataclass(frozen=True)
class Burnt:
    """What an outage of the thing a job calls does to a job that comes due at its beginning."""

    attempts: int
    attempts_needed: int
    late_seconds: Fraction  # after recovery, until it is tried again


def burnt_attempts(outage_seconds: Fraction, backoff: Backoff) -> Burnt:
    """Attempts that fail while the dependency is down (workers alive), and how late the next one comes.

    With 1, 2, 4, … a 300 s outage burns nine attempts (0, 1, 3, … 255 s) and the tenth comes 211 s after recovery.
    Assumes: a failing attempt takes no time, no jitter. Units: attempts, s. Source: partial sums of the backoff.
    """
    at, attempts = Fraction(0), 0
    while at < outage_seconds:
        attempts += 1
        at += backoff.wait_seconds(attempts)
    return Burnt(attempts, attempts + 1, at - outage_seconds)
