"""The decision table is complete, and obeys the three rules that it stands for."""

import itertools

import pytest

from reference_queue.decisions import AFTER_ASKING, FIRST, Answer, Recovery, Step, first_step, step_after_asking
from reference_queue.grants import Phase

EVERY_CASE = list(itertools.product(Phase, Recovery, (True, False)))


def test_each_case_has_exactly_one_row() -> None:
    assert sorted((row.phase, row.recovery, row.may_call) for row in FIRST) == sorted(EVERY_CASE)
    assert set(AFTER_ASKING) == set(itertools.product(Answer, (True, False)))


@pytest.mark.parametrize(("phase", "recovery", "may_call"), EVERY_CASE)
def test_the_rules(phase: Phase, recovery: Recovery, may_call: bool) -> None:
    step = first_step(phase, recovery, may_call=may_call)
    if phase is Phase.CALL_UNKNOWN and step is Step.CALL:
        assert recovery is Recovery.REPLAY, "a call of unknown result is repeated unasked only where that does no harm"
    if step is Step.DEAD:
        assert phase is Phase.NOT_CALLED, "a job that may have had its effect does not die unseen"
    if not may_call:
        assert step is not Step.CALL, "attempts that are used up are not exceeded"
    if step is Step.ASK:
        assert recovery is Recovery.ASK


@pytest.mark.parametrize("may_call", [True, False])
def test_only_absent_leads_to_a_call_or_to_death(may_call: bool) -> None:
    for answer in Answer:
        step = step_after_asking(answer, may_call=may_call)
        assert (step in {Step.CALL, Step.DEAD}) == (answer is Answer.ABSENT)
        assert not (step is Step.CALL and not may_call)
