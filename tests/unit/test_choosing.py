"""Which scenarios ``--only`` and ``--skip`` leave."""

from collections.abc import Sequence

import pytest

from harness.contracts.problem import BadInput
from harness.run.gate import choose
from scenarios import discover

SCENARIOS = discover()


def chosen(only: Sequence[str] = (), skip: Sequence[str] = ()) -> set[str]:
    return {scenario.name for scenario in choose(SCENARIOS, only, skip)}


def test_words_may_be_repeated_or_separated_by_commas() -> None:
    both = {name for name in SCENARIOS if "killed" in name or "late_complete" in name}
    assert both
    assert chosen(["killed", "late_complete"]) == chosen(["killed,late_complete"]) == both
    assert chosen([" killed , late_complete,"]) == both
    assert chosen(["killed,late_complete", "group"]) == both | {name for name in SCENARIOS if "group" in name}


def test_what_is_skipped_likewise() -> None:
    rest = {name for name in SCENARIOS if "killed" not in name and "late" not in name}
    assert chosen(skip=["killed,late"]) == chosen(skip=["killed", "late"]) == rest
    assert chosen(["worker"], ["killed,late"]) == {name for name in rest if "worker" in name}


def test_nothing_said_leaves_all() -> None:
    assert chosen() == set(SCENARIOS)


@pytest.mark.parametrize("empty", ["", " ", ",", " , "])
def test_a_word_that_is_empty_is_no_part_of_every_name(empty: str) -> None:
    with pytest.raises(BadInput, match=f"--only {empty!r}: names no scenario"):
        chosen([empty])
    with pytest.raises(BadInput, match=f"--skip {empty!r}: names no scenario"):
        chosen(["killed"], [empty])


def test_every_stranger_in_a_list_is_named() -> None:
    with pytest.raises(BadInput) as caught:
        chosen(["killed,zzzz", "yyyy"], ["late,xxxx"])
    assert [line.split(":")[0] for line in caught.value.mistakes] == ["--only 'zzzz'", "--only 'yyyy'", "--skip 'xxxx'"]
