"""What a statement that grants must return."""

import pytest

from reference_queue.grants import Grant, Phase, WrongColumns

ROW = {
    "id": 7, "operation_key": "k", "kind": "call", "version": 2, "attempts": 1, "max_attempts": 3, "phase": "call_unknown",
    "remote_id": None, "group_key": None, "tenant": None, "may_call": True, "run_at": "more than asked for",
}  # fmt: skip


def test_a_row_is_read_and_more_columns_do_no_harm() -> None:
    grant = Grant.from_row(ROW, deadline=1.5)
    assert (grant.id, grant.version, grant.phase, grant.deadline) == (7, 2, Phase.CALL_UNKNOWN, 1.5)


def test_an_overlay_that_returns_too_little_is_told_what_is_missing() -> None:
    with pytest.raises(WrongColumns, match=r"returned no column phase, version: let it return what"):
        Grant.from_row({name: value for name, value in ROW.items() if name not in ("version", "phase")}, deadline=0)
