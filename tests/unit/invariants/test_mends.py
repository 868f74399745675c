"""How a finding is usually mended: said by every invariant, short, and handed on to the reports."""

import re
from pathlib import Path

import pytest

from harness.contracts.invariant import Invariant
from harness.history.reading import read_history
from harness.history.story import Story, stories
from harness.invariants import discover
from harness.run.compose import play_document
from harness.run.judge import judge
from scenarios import discover as discover_scenarios

HISTORIES = Path(__file__).parents[2] / "golden" / "histories"
INVARIANTS = discover()


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.name)
def test_a_mend_is_a_sentence_or_two_that_fit_a_report(invariant: Invariant[Story]) -> None:
    mend = invariant.mend
    assert 60 <= len(mend) <= 240
    assert mend.endswith(".")
    assert mend == " ".join(mend.split())
    assert mend.count("`") % 2 == 0
    prose = re.sub(r"`[^`]*`", "code", mend)
    assert 1 <= len(re.findall(r"[.!?](?: |$)", prose)) <= 3, "a sentence or two, at most three"
    assert not re.search(r"\b(simply|easily|just|robust|seamless|powerful|best.practice)\b", prose, re.IGNORECASE)


def test_no_two_invariants_are_mended_by_the_same_words() -> None:
    assert len({invariant.mend for invariant in INVARIANTS}) == len(INVARIANTS)


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.name)
def test_a_finding_of_a_document_has_its_invariants_mend(invariant: Invariant[Story]) -> None:
    (story,) = stories(read_history(HISTORIES / f"{invariant.name}.bad.jsonl")).values()
    scenario = next(iter(discover_scenarios().values()))
    play = play_document(scenario, story, judge(story), repeat=1, seconds=1, reproduce="", known={})
    mends = {each.name: each.mend for each in INVARIANTS}
    assert invariant.name in {finding.invariant for finding in play.findings}
    assert all(finding.mend == mends[finding.invariant] for finding in play.findings)
