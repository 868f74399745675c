"""The database's part of the work: statements per second, leases that are not renewed, and throughput against clients."""

import math
from dataclasses import dataclass
from fractions import Fraction


def statements_per_second(
    completions_per_second: Fraction,
    batch: int,
    *,
    batched_completes: bool = False,
    busy_slots: Fraction = Fraction(0),
    heartbeat_seconds: Fraction | None = None,
    idle_slots: Fraction = Fraction(0),
    poll_seconds: Fraction | None = None,
) -> Fraction:
    """μ(1/b + 1) + busy/H + idle/poll, or μ(2/b) when completions are batched as claims are.

    Assumes: a claim takes b jobs at once, each busy slot renews every H seconds, each idle one polls. Units: statements/s.
    Source: counting the statements of one job.
    """
    per_job = Fraction(1, batch) + (Fraction(1, batch) if batched_completes else 1)
    renewals = busy_slots / heartbeat_seconds if heartbeat_seconds else Fraction(0)
    polls = idle_slots / poll_seconds if poll_seconds else Fraction(0)
    return completions_per_second * per_job + renewals + polls


def duplicates_per_second(arrival_per_second: Fraction, service_seconds: Fraction, lease_seconds: Fraction) -> float:
    """λ·P(S > L) = λe^{−L/S}: jobs a second that outlive a lease nobody renews, and are started twice.

    Assumes: exponential service times; no heartbeat. Units: jobs/s. Source: tail of the exponential distribution.
    """
    return float(arrival_per_second) * math.exp(-float(lease_seconds / service_seconds))


@dataclass(frozen=True)
class Scalability:
    """The universal scalability law: X(n) = γn/(1 + α(n − 1) + βn(n − 1)) attempts/s with n claiming connections.

    Assumes: one workload, n the only thing that changes. Source: Gunther, "Guerrilla Capacity Planning". α is the share that
    queues (locks), β the cost of agreeing (rows that others hold): with β > 0 more connections give less from a point on.
    """

    gamma_per_second: float
    alpha: float
    beta: float

    def per_second(self, clients: float) -> float:
        """X(n), in attempts/s."""
        slowdown = 1 + self.alpha * (clients - 1) + self.beta * clients * (clients - 1)
        return self.gamma_per_second * clients / slowdown

    @property
    def best_clients(self) -> float | None:
        """n* = √((1 − α)/β): where X(n) peaks; None when it never falls."""
        return math.sqrt((1 - self.alpha) / self.beta) if self.beta > 0 else None
