"""Jobs recognised in parameters and literals."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.framing import bind_parameters
from harness.wire.known_jobs import KnownJobs

IDENTITY = "6f6b1a6e-0f0f-4b53-9a53-0d8f0a4e9b11"


def bind(*values: bytes | None, formats: tuple[int, ...] = ()) -> bytes:
    body = b"portal\0statement\0" + struct.pack(f"!H{len(formats)}HH", len(formats), *formats, len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body + struct.pack("!HH", 1, 0)


@pytest.fixture
def known() -> KnownJobs:
    jobs = KnownJobs()
    jobs.add("order-1", "17")
    jobs.add("order-2", IDENTITY)
    jobs.add("it's 100%, <b>")
    return jobs


def array(*elements: bytes) -> bytes:
    head = struct.pack("!iiiii", 1, 0, 20, len(elements), 1)
    return head + b"".join(struct.pack("!i", len(element)) + element for element in elements)


@pytest.mark.parametrize(
    ("body", "keys", "jobs"),
    [
        (bind(b"order-1"), ("order-1",), ()),
        (bind(b"order-10"), (), ()),
        (bind(None, b"17"), (), ("17",)),
        (bind(b"\0\x11", formats=(1,)), (), ("17",)),
        (bind(b"\0\0\0\x11", formats=(1,)), (), ("17",)),
        (bind(b"x", b"\0\0\0\0\0\0\0\x11", formats=(0, 1)), (), ("17",)),
        (bind(uuid.UUID(IDENTITY).bytes, formats=(1,)), (), (IDENTITY,)),
        (bind(IDENTITY.encode()), (), (IDENTITY,)),
        (bind(b"{5,17}"), (), ("17",)),
        (bind(array(b"\0\0\0\0\0\0\0\5", b"\0\0\0\0\0\0\0\x11"), formats=(1,)), (), ("17",)),
        (bind(b"{}"), (), ()),
        (bind(b"it's 100%, <b>"), ("it's 100%, <b>",), ()),
    ],
)
def test_in_bind(known: KnownJobs, body: bytes, keys: tuple[str, ...], jobs: tuple[str, ...]) -> None:
    assert known.in_bind(body) == (keys, jobs)


def test_in_text_takes_whole_tokens(known: KnownJobs) -> None:
    assert known.in_text("update j set s = 'done' where id = 17") == ((), ("17",))
    assert known.in_text("update j set s = 'done' where id = 170 and x17 = 1") == ((), ())
    assert known.in_text("select complete('it''s 100%, <b>')") == (("it's 100%, <b>",), ())
    assert known.in_text("update j set a = 1 where id = any('{3,17}')") == ((), ("17",))


def test_an_id_may_be_told_later(known: KnownJobs) -> None:
    before = known.version
    known.add("it's 100%, <b>", "99")
    assert known.key_of("99") == "it's 100%, <b>"
    assert known.version > before


@given(st.binary(max_size=200))
def test_a_malformed_bind_names_nothing_and_breaks_nothing(body: bytes) -> None:
    assert isinstance(bind_parameters(body), list)
    jobs = KnownJobs()
    jobs.add("k", "1")
    jobs.in_bind(body)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=5))
def test_every_parameter_of_a_bind_is_found(values: list[bytes | None]) -> None:
    assert [value for value, _ in bind_parameters(bind(*values))] == [value for value in values if value is not None]
