"""The smallest ceiling decides."""

from fractions import Fraction

import pytest

from harness.capacity.drain import drain
from harness.capacity.limits import (
    backlog_after_burst,
    database_ceiling,
    limit_ceiling,
    lowest,
    slot_ceiling,
)

SLOTS = slot_ceiling(16, Fraction("0.8"))


@pytest.mark.parametrize(
    ("limit", "of", "seconds"), [(15, "external limit", 1200), (12, "external limit", None), (25, "slots", 450)]
)
def test_an_external_limit_binds_or_it_does_not(limit: int, of: str, seconds: int | None) -> None:
    ceiling = lowest([SLOTS, limit_ceiling(Fraction(limit), Fraction(1))])
    assert ceiling.of == of
    assert drain(Fraction(3600), ceiling.per_second, Fraction(12)).seconds == seconds


def test_tokens_saved_in_the_outage_shorten_the_drain() -> None:
    assert drain(backlog_after_burst(Fraction(3600), Fraction(60)), Fraction(15), Fraction(12)).seconds == 1180
    assert backlog_after_burst(Fraction(10), Fraction(60)) == 0


def test_retries_and_calls_use_up_the_limit() -> None:
    assert limit_ceiling(Fraction(40), Fraction(10, 9), 2).per_second == 18
    assert database_ceiling(Fraction(100), Fraction(2)).per_second == 50
