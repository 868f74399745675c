"""A slow class of jobs among the others: the mean service time and the spread they give together."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SlowClass:
    """A share of the jobs (0 < share < 1), and how long each of them takes."""

    share: Fraction
    seconds: Fraction


@dataclass(frozen=True)
class Times:
    """Service times by their first two moments: mean and squared coefficient of variation (0 fixed, 1 exponential)."""

    mean_seconds: Fraction
    cv2: Fraction = Fraction(1)

    @property
    def variance(self) -> Fraction:
        """In seconds²."""
        return self.cv2 * self.mean_seconds**2


def mix(service: Times, slow: SlowClass | None) -> Times:
    """E[S] = (1 − q)S + qS', E[S²] = Σ qᵢSᵢ²(1 + cᵢ²): moments of a mixture, each class spread like ``service``.

    Assumes: classes are drawn independently and share the slots. Units: s. Source: law of total variance.
    """
    if slow is None:
        return service
    fast = 1 - slow.share
    mean = fast * service.mean_seconds + slow.share * slow.seconds
    second = (fast * service.mean_seconds**2 + slow.share * slow.seconds**2) * (1 + service.cv2)
    return Times(mean, second / mean**2 - 1)
