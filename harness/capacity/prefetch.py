"""Jobs that a worker claims ahead: they wait in its memory, where no other worker can take them.

The drain time hardly moves with the batch; waits, fairness and leases do, and "pending = 0" lies by as much.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class LocalWait:
    """What a batch of b does inside one worker that runs its jobs one after another."""

    mean_seconds: Fraction
    longest_seconds: Fraction
    lease_seconds: Fraction  # the shortest lease that outlives the batch without renewal


def local_wait(batch: int, service_seconds: Fraction) -> LocalWait:
    """Mean (b − 1)S/2, longest (b − 1)S, lease at least bS.

    Assumes: one serial worker per batch, all b jobs there at once, mean service times. Units: s. Source: position in a line.
    """
    return LocalWait((batch - 1) * service_seconds / 2, (batch - 1) * service_seconds, batch * service_seconds)
