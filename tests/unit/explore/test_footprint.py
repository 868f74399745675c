"""What a statement reads and writes, and which two of them may be swapped."""

import pytest

from harness.explore.footprint import EVERYTHING, NOTHING, footprint


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (footprint(writes=["row:a"]), footprint(writes=["row:b"]), False),
        (footprint(writes=["row:a"]), footprint(reads=["row:a"]), True),
        (footprint(reads=["row:*"]), footprint(writes=["row:a"]), True),
        (footprint(reads=["row:*"]), footprint(reads=["row:*"]), False),
        (footprint(reads=["row:*"]), footprint(writes=["sink:a", "story:a"]), False),
        (footprint(writes=["sink:a", "story:a"]), footprint(writes=["row:a", "story:a"]), True),
        (EVERYTHING, footprint(reads=["sink:a"]), True),
        (EVERYTHING, NOTHING, False),
    ],
)
def test_conflicts_are_what_either_writes_and_the_other_touches(first, second, conflict):
    assert first.conflicts(second) is conflict
    assert second.conflicts(first) is conflict
