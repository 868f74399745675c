"""The jobs that the harness enqueued, recognised among a statement's parameters and literals."""

import contextlib
import struct
import uuid

from harness.wire.framing import bind_parameters
from harness.wire.statements import literals

Found = tuple[tuple[str, ...], tuple[str, ...]]  # keys, job ids
NOTHING: Found = ((), ())
_LONGEST_ARRAY = 65_536


class KnownJobs:
    """Keys and job ids in every form in which they travel: text, big-endian integers, uuid, and arrays of these.

    A small number may be a job's id by accident (an attempt count, say): what is found is evidence, not proof.
    """

    def __init__(self) -> None:
        self._keys: dict[bytes, str] = {}
        self._ids: dict[bytes, str] = {}
        self._key_of: dict[str, str] = {}
        self.version = 0

    def add(self, key: str, job_id: str | None = None) -> None:
        """Make a job known, or tell the id of one whose key is known."""
        self._keys[key.encode()] = key
        if job_id is not None:
            self._key_of[job_id] = key
            for form in _forms(job_id):
                self._ids[form] = job_id
        self.version += 1

    def key_of(self, job_id: str) -> str | None:
        return self._key_of.get(job_id)

    def in_bind(self, body: bytes) -> Found | None:
        """What a Bind's parameters name; None when it has none, so that the statement's text may tell."""
        parameters = bind_parameters(body)
        if not parameters:
            return None
        keys: dict[str, None] = {}
        jobs: dict[str, None] = {}
        for value, binary in parameters:
            self._look(value, keys, jobs)
            if len(value) <= _LONGEST_ARRAY:
                for element in _binary_array(value) if binary else _text_array(value):
                    self._look(element, keys, jobs)
        return tuple(keys), tuple(jobs)

    def in_text(self, sql: str) -> Found:
        """What the literals of a statement name, as whole tokens."""
        if not self._keys:
            return NOTHING
        keys: dict[str, None] = {}
        jobs: dict[str, None] = {}
        for literal in literals(sql):
            value = literal.encode()
            self._look(value, keys, jobs)
            for element in _text_array(value):
                self._look(element, keys, jobs)
        return tuple(keys), tuple(jobs)

    def _look(self, value: bytes, keys: dict[str, None], jobs: dict[str, None]) -> None:
        if (key := self._keys.get(value)) is not None:
            keys[key] = None
        if (job := self._ids.get(value)) is not None:
            jobs[job] = None


def _forms(job_id: str) -> set[bytes]:
    forms = {job_id.encode()}
    if job_id.removeprefix("-").isdecimal() and job_id.isascii():
        for width in ("!h", "!i", "!q"):
            with contextlib.suppress(struct.error):  # does not fit
                forms.add(struct.pack(width, int(job_id)))
    elif len(job_id) in {32, 36}:
        with contextlib.suppress(ValueError):
            identity = uuid.UUID(job_id)
            forms |= {identity.bytes, str(identity).encode(), identity.hex.encode()}
    return forms


def _text_array(value: bytes) -> list[bytes]:
    """The elements of a one-dimensional array in text format, quotes taken off; nothing when it is none."""
    if not (value.startswith(b"{") and value.endswith(b"}")) or value[1:2] in {b"{", b""}:
        return []
    return [element.strip().strip(b'"') for element in value[1:-1].split(b",")]


def _binary_array(value: bytes) -> list[bytes]:
    """The elements of a one-dimensional array in binary format; nothing when it is none."""
    if len(value) < 20 or value[:7] != b"\0\0\0\1\0\0\0":
        return []
    elements: list[bytes] = []
    (count,) = struct.unpack_from("!i", value, 12)
    at = 20
    while len(elements) < count and at + 4 <= len(value):
        (size,) = struct.unpack_from("!i", value, at)
        at += 4
        elements.append(value[at : at + max(size, 0)])
        at += max(size, 0)
    return elements if at == len(value) else []
