"""What the gate on the wire reads out of messages: where a transaction begins and ends, and which values are bound."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explore.gate import begins_transaction, bind_values, ends_transaction, is_free

values = st.lists(st.tuples(st.one_of(st.none(), st.binary(max_size=20)), st.booleans()))


def bind(parameters):
    body = b"portal\0statement\0" + struct.pack("!H", len(parameters))
    body += b"".join(struct.pack("!H", binary) for _, binary in parameters)
    body += struct.pack("!H", len(parameters))
    for value, _ in parameters:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body + struct.pack("!HH", 1, 0)


@given(values)
def test_parameters_are_read_with_their_nulls_in_place(parameters):
    assert bind_values(bind(parameters)) == tuple(parameters)


@given(st.binary(max_size=30))
def test_what_is_no_bind_is_nothing_and_no_error(body):
    assert bind_values(body) is None or isinstance(bind_values(body), tuple)


@pytest.mark.parametrize(
    "text", ["set search_path = ?", "listen wake", "show server_version", "select ?", "", "discard all"]
)
def test_what_touches_no_row_passes(text):
    assert is_free(text)


@pytest.mark.parametrize(
    "text",
    [
        "begin",
        "commit",
        "select id from t",
        "begin; update t set a = ?; commit",
        "set a = ?; delete from t",
        "delete from t",
    ],
)
def test_everything_else_is_held(text):
    assert not is_free(text)


def test_the_edges_of_a_transaction_are_told_from_what_only_looks_like_them():
    assert begins_transaction("begin")
    assert begins_transaction("start transaction isolation level serializable")
    assert not begins_transaction("begin; select ?")
    assert ends_transaction("commit")
    assert ends_transaction("rollback")
    assert not ends_transaction("rollback to savepoint a")
    assert not ends_transaction("update t set ends = ?")
