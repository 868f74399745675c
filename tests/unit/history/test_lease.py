"""The lease rule: three clocks, three answers, and what stands in for a lease that the row does not show."""

import msgspec
import pytest

from harness.history.events import FaultLanded
from harness.history.lease import Lease, lease_at
from harness.history.made_up import SUBJECT, History
from harness.history.story import Story


def ruling(h: History) -> Lease:
    story = Story.of(h.end())
    job = story.jobs["a"]
    return lease_at(story, job, len(job.transitions) - 1).lease


def granted(**subject: object) -> History:
    h = History(subject=msgspec.structs.replace(SUBJECT, **subject))
    h.start(1, 2)
    h.enqueue("a")
    return h


@pytest.mark.parametrize(
    ("waited_ms", "took_ms", "expected"),
    [(1000, 0, Lease.EARLY), (2500, 0, Lease.OVER), (2500, 1500, Lease.UNKNOWN), (1000, 900, Lease.EARLY)],
)
def test_wall_clock_says_early_transaction_clock_says_over(waited_ms: int, took_ms: int, expected: Lease) -> None:
    h = granted()
    h.claim(1, "a")
    h.wait(waited_ms)
    h.claim(2, "a", took_ms=took_ms)
    assert ruling(h) is expected


def test_a_renewal_moves_the_end() -> None:
    h = granted()
    h.claim(1, "a")
    h.wait(1500)
    h.renew(1, "a")
    h.wait(1000)
    h.claim(2, "a")
    assert ruling(h) is Lease.EARLY


def test_nobody_holds_what_was_given_back() -> None:
    h = granted()
    h.claim(1, "a")
    h.release(1, "a")
    h.claim(2, "a")
    assert ruling(h) is Lease.FREE


def without_column() -> History:
    h = granted(has_lease=False)
    h.claim(1, "a", lease_ms=None)
    return h


def test_without_a_lease_column_the_holders_death_frees_the_job() -> None:
    h = without_column()
    h.kill(1)
    h.claim(2, "a", lease_ms=None)
    assert ruling(h) is Lease.OVER


def test_without_a_lease_column_the_declared_lease_counts_from_the_grant() -> None:
    h = without_column()
    h.wait(2100)
    h.claim(2, "a", lease_ms=None)
    assert ruling(h) is Lease.OVER


def test_without_a_lease_column_a_living_undisturbed_holder_is_robbed() -> None:
    h = without_column()
    h.wait(100)
    h.claim(2, "a", lease_ms=None)
    assert ruling(h) is Lease.EARLY


def test_without_a_lease_column_a_disturbed_holder_leaves_it_open() -> None:
    h = without_column()
    h.say(FaultLanded("network cut", "seen", 1))
    h.wait(100)
    h.claim(2, "a", lease_ms=None)
    assert ruling(h) is Lease.UNKNOWN
