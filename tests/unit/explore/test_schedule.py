"""A schedule as text: what is told is read back, and what is none is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.problem import BadInput
from harness.explore.schedule import Kind, Move, read, switches, told

moves = st.lists(st.builds(Move, st.sampled_from(Kind), st.integers(1, 12)), min_size=1)


@given(moves)
def test_what_is_told_is_read_back(schedule):
    assert read(told(schedule)) == tuple(schedule)


@pytest.mark.parametrize("text", ["", "x1", "w", "w0", "w1 w", "w1;w2"])
def test_what_is_no_schedule_is_refused_with_an_example(text):
    with pytest.raises(BadInput, match="w1"):
        read(text)


def test_spaces_and_commas_may_stand_between_moves():
    assert told(read("w1, w2 e1")) == "w1w2e1"


def test_a_lost_reply_is_its_workers_own_move_and_a_leases_end_is_nobodys():
    assert Move(Kind.SEVER, 2).thread == Move(Kind.STEP, 2).thread
    assert Move(Kind.EXPIRE, 2).worker == 0
    assert Move(Kind.EXPIRE, 2).thread != Move(Kind.STEP, 2).thread


def test_switches_count_changes_of_thread():
    assert switches(read("w1w1w2w1")) == 2
