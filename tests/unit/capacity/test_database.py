"""Statements, leases and clients."""

from fractions import Fraction

import pytest

from harness.capacity.database import Scalability, duplicates_per_second, statements_per_second


@pytest.mark.parametrize(("batch", "batched", "rate"), [(1, False, "43.2"), (10, False, "25.2"), (10, True, "7.2")])
def test_statements_while_draining(batch: int, batched: bool, rate: str) -> None:
    statements = statements_per_second(
        Fraction(20), batch, batched_completes=batched, busy_slots=Fraction(16), heartbeat_seconds=Fraction(5)
    )
    assert statements == Fraction(rate)


def test_idle_slots_poll() -> None:
    assert statements_per_second(Fraction(1), 1, idle_slots=Fraction(6), poll_seconds=Fraction(2)) == 5


def test_a_lease_that_nobody_renews_starts_jobs_twice() -> None:
    assert duplicates_per_second(Fraction(12), Fraction("0.8"), Fraction(5)) == pytest.approx(0.0232, abs=5e-5)


def test_throughput_peaks_where_the_law_says() -> None:
    law = Scalability(1000.0, 0.05, 0.002)
    best = law.best_clients
    assert best is not None
    assert law.per_second(1) == 1000
    assert law.per_second(best) > max(law.per_second(best - 1), law.per_second(best + 1))
    assert Scalability(1000.0, 0.05, 0.0).best_clients is None
