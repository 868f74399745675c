"""A lease's length by the database's clock, also when that clock is set back inside the granting transaction."""

import msgspec
import pytest

from harness.contracts.invariant import Unknown
from harness.contracts.verdict import Finding
from harness.history.events import Moved
from harness.history.made_up import SUBJECT, History
from harness.history.story import Story
from harness.invariants.lease_by_database_clock import lease_by_database_clock

LEASE_US = int((SUBJECT.lease_seconds or 0) * 1e6)


def granted(set_back_ms: int, lease_from_start_ms: int) -> list[Finding | Unknown]:
    """A grant whose row was changed at a wall clock so much before its transaction's start."""
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    entries = []
    for entry in h.entries:
        what = entry.what
        if isinstance(what, Moved) and what.change == "claim":
            assert what.new is not None
            until = what.transaction_us + LEASE_US + lease_from_start_ms * 1000
            what = msgspec.structs.replace(
                what,
                wall_us=what.transaction_us - set_back_ms * 1000,
                new=msgspec.structs.replace(what.new, lease_us=until),
            )
        entries.append(msgspec.structs.replace(entry, what=what))
    return list(lease_by_database_clock.judge(Story.of(entries)))


@pytest.mark.parametrize(
    ("set_back_ms", "lease_from_start_ms", "said"),
    [
        (0, 0, []),
        (0, 3000, [Finding]),
        (1000, 0, []),  # counted from the start, by the clock as it was then
        (1000, 3000, [Unknown]),
        (3_600_000, -3_600_000, []),  # counted from the change, by the clock as it was set
        (3_600_000, -1_800_000, [Finding]),  # by neither
    ],
)
def test_a_clock_set_back_in_between_blames_nobody(
    set_back_ms: int, lease_from_start_ms: int, said: list[type]
) -> None:
    assert [type(each) for each in granted(set_back_ms, lease_from_start_ms)] == said
