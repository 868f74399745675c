"""A run's verdict and the one line that tells it."""

import msgspec

from harness.contracts.verdict import Verdict
from harness.document import FindingDoc, PlayDoc
from harness.run.compose import conclude


def _play(verdict: str, *findings: str) -> PlayDoc:
    found = tuple(FindingDoc(name, "a title", "a sentence") for name in findings)
    return PlayDoc("a", "a", verdict, "a reason", (), findings=found)


def test_one_is_told_as_one_and_several_as_several() -> None:
    broken, unclear, lacking = _play("fail", "one_owner"), _play("inconclusive"), _play("not applicable")
    assert conclude([broken, lacking])[1] == "broken: 1 of 1 scenario failed, by one_owner (1 of 2 apply)"
    assert conclude([broken, unclear])[1] == "broken: 1 of 2 scenarios failed, by one_owner (2 of 2 apply)"
    assert conclude([unclear])[1] == "inconclusive: 1 of 1 scenario could not be judged (1 of 1 apply)"


def test_what_a_play_left_out_is_told_where_no_line_is_cut() -> None:
    left_out = msgspec.structs.replace(_play("pass"), left_out=("the moon was left out, because it was day",))
    verdict, summary, notes = conclude([left_out, left_out, _play("pass")])
    assert (verdict, summary) == (Verdict.PASS, "held (3 of 3 apply)")
    assert notes == ("a: the moon was left out, because it was day",)
