"""Random arrivals and slot times for simulations: Poisson or even arrivals, service of any spread, a slow class, retries.

Every array has a row per job and a column per replication; a generator with a seed makes the same run again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.capacity.retries import Backoff
from harness.capacity.simulation import Attempt, Job

Floats = NDArray[np.float64]
Shape = Literal["exponential", "fixed", "lognormal"]


@dataclass(frozen=True)
class Service:
    """How long an attempt holds its slot. ``cv2`` is for the log-normal shape; the slow class has the same shape."""

    mean_seconds: float
    shape: Shape = "exponential"
    cv2: float = 1.0
    slow_share: float = 0.0
    slow_seconds: float = 0.0

    @property
    def spread(self) -> float:
        """cₛ² of one class."""
        return {"exponential": 1.0, "fixed": 0.0, "lognormal": self.cv2}[self.shape]

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        """Independent attempts."""
        means = np.full(size, self.mean_seconds)
        if self.slow_share:
            means[rng.random(size) < self.slow_share] = self.slow_seconds
        if self.shape == "fixed":
            return means
        if self.shape == "exponential":
            return means * rng.standard_exponential(size)
        sigma2 = math.log(1 + self.cv2)
        return means * np.exp(rng.standard_normal(size) * math.sqrt(sigma2) - sigma2 / 2)


def poisson_arrivals(rng: np.random.Generator, per_second: float, size: tuple[int, int]) -> Floats:
    """Poisson arrivals from time 0 on."""
    return np.cumsum(rng.standard_exponential(size) / per_second, axis=0)


def even_arrivals(per_second: float, size: tuple[int, int]) -> Floats:
    """One arrival every 1/λ seconds, the same in each replication."""
    return np.repeat((np.arange(1, size[0] + 1) / per_second)[:, None], size[1], axis=1)


def work(
    rng: np.random.Generator,
    service: Service,
    size: tuple[int, int],
    failure_share: float = 0.0,
    max_attempts: int | None = None,
) -> Floats:
    """Slot time of whole jobs: attempts until one succeeds or none is left. Waits between attempts hold no slot."""
    total = service.draw(rng, size)
    if not failure_share:
        return total
    attempts = rng.geometric(1 - failure_share, size)
    if max_attempts is not None:
        attempts = np.minimum(attempts, max_attempts)
    for again in range(2, int(attempts.max()) + 1):
        rows, columns = np.nonzero(attempts >= again)
        total[rows, columns] += service.draw(rng, (len(rows), 1))[:, 0]
    return total


def jobs(
    rng: np.random.Generator,
    dues: Sequence[float],
    service: Service,
    *,
    failure_share: float = 0.0,
    max_attempts: int | None = None,
    backoff: Backoff | None = None,
    jitter: float = 0.0,
) -> list[Job]:
    """Jobs with their attempts for one path: each fails independently and comes back after its backoff (None: at once).

    ``jitter`` is the share of each wait that is left to chance: the wait is drawn from (1 − jitter)·wait to the whole wait.
    """
    failures = rng.geometric(1 - failure_share, len(dues)) - 1
    if max_attempts is not None:
        failures = np.minimum(failures, max_attempts - 1)  # the last attempt ends the job, done or dead
    seconds = iter(service.draw(rng, (int(failures.sum()) + len(dues), 1))[:, 0].tolist())

    def wait(retry: int) -> float:
        whole = float(backoff.wait_seconds(retry)) if backoff else 0.0
        return whole * (1 - jitter * rng.random()) if jitter else whole

    return [
        Job(due, (*(Attempt(next(seconds), wait(retry)) for retry in range(1, failed + 1)), Attempt(next(seconds))))
        for due, failed in zip(dues, failures.tolist(), strict=True)
    ]
