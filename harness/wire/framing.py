"""The PostgreSQL protocol, version 3, as bytes: where messages begin, and the few that somebody wants to read.

Knows nothing of sessions or holds, keeps no payload that nobody asked for, and never changes a byte.
"""

import re
import struct
from collections.abc import Sequence

import msgspec

CANCEL_REQUEST = 80877102
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
LONGEST_STARTUP = 10_000  # PostgreSQL's own limit on a startup packet
TLS_HANDSHAKE = 0x16  # first byte of a TLS client that does not ask first

IDLE, IN_TRANSACTION, FAILED = ord("I"), ord("T"), ord("E")  # what ReadyForQuery says

_LENGTH = struct.Struct("!I")
_length_at = _LENGTH.unpack_from


def _table(letters: str) -> bytes:
    return bytes(chr(code) in letters for code in range(256))


# Frontend: everything but CopyData, Describe and passwords. Backend: what ends statements, announces, or names the session.
FRONT = _table("QPBESCFXcfH")
BACK = _table("ZCEIsNKGWA")


class Scanner:
    """Finds message boundaries in one direction of one connection, however the bytes are split.

    ``feed`` returns the bytes that may go on now and the offsets in them at which a message of interest begins; such a
    message is always whole. Messages of no interest go on as they come, in pieces. Bytes that are no protocol (an absurd
    length) set ``lost``: from then on everything passes unread.
    """

    __slots__ = ("_have", "_interesting", "_need", "_parts", "_skip", "lost")

    def __init__(self, interesting: bytes) -> None:
        self._interesting = interesting
        self._skip = 0  # bytes still to come of a message of no interest
        self._parts: list[bytes] = []  # the beginning of a message that must be whole
        self._have = 0
        self._need = 0
        self.lost = False

    @property
    def aligned(self) -> bool:
        """Whether the next byte begins a message."""
        return not self._skip and not self._parts and not self.lost

    def feed(self, data: bytes) -> tuple[bytes, Sequence[int]]:
        if self._parts:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return b"", ()
            data = b"".join(self._parts)
            self._parts = []
        if self.lost:
            return data, ()
        interesting, length_at = self._interesting, _length_at  # this loop is the proxy's cost: names are local
        end = len(data)
        last = end - 5
        at = self._skip
        need = 5
        marks: list[int] = []
        while at <= last:
            (length,) = length_at(data, at + 1)
            after = at + 1 + length
            if length < 4 or length > 0x4000_0000:  # 1 GiB is PostgreSQL's own limit
                self.lost = True
                self._skip = 0
                return data, marks
            if interesting[data[at]]:
                if after > end:
                    need = after - at
                    break
                marks.append(at)
            at = after
        if at == end:
            self._skip = 0
            return data, marks
        if at > end:
            self._skip = at - end
            return data, marks
        self._skip = 0
        self._parts = [data[at:]]
        self._have = end - at
        self._need = need
        return data[:at], marks


def end_of(data: bytes, at: int) -> int:
    """Where the message that begins at ``at`` ends."""
    end: int = at + 1 + _length_at(data, at + 1)[0]
    return end


def int_at(data: bytes, at: int) -> int:
    number: int = _length_at(data, at)[0]
    return number


def word_at(data: bytes, at: int) -> bytes:
    """The zero-terminated word that begins at ``at``; without its end, all that there is."""
    stop = data.find(0, at)
    return data[at:] if stop < 0 else data[at:stop]


def message(kind: bytes, body: bytes) -> bytes:
    """A whole message, for those who speak the protocol themselves."""
    return kind + _LENGTH.pack(len(body) + 4) + body


def startup_parameters(packet: bytes) -> dict[str, str]:
    """The parameters of a whole startup packet, length and version included."""
    words = [word.decode("utf-8", "replace") for word in packet[8:].split(b"\0")]
    return {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name}


def with_parameter(packet: bytes, name: str, value: str) -> bytes:
    """The startup packet with one parameter more."""
    body = packet[4:-1] + name.encode() + b"\0" + value.encode() + b"\0\0"
    return _LENGTH.pack(len(body) + 4) + body


class Announcement(msgspec.Struct, frozen=True):
    """What the truth trigger says in its notice."""

    seq: int
    xid: int
    change: str
    key: str | None = None
    job: str | None = None
    worker: int | None = None
    place: int | None = None  # which write of its message made it, as the gate at the snapshot counts them


_ANNOUNCEMENT = re.compile(rb"\0Mqueueproof!(\{[^\0]*\})\0")
_decoder = msgspec.json.Decoder(Announcement, strict=False)


def announcement(body: bytes) -> Announcement | None:
    """The truth trigger's words if this NoticeResponse body is one of ours, else None: it belongs to the client."""
    found = _ANNOUNCEMENT.search(body)
    if found is None:
        return None
    for text in (found[1], found[1].decode("latin-1").encode()):  # a client may have asked for another encoding
        try:
            return _decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return None


_SQLSTATE = re.compile(rb"(?:^|\0)C([0-9A-Z]{5})\0")


def sqlstate(body: bytes) -> str:
    """The code of an ErrorResponse body."""
    found = _SQLSTATE.search(body)
    return found[1].decode() if found else "?????"


def bind_parameters(body: bytes) -> list[tuple[bytes, bool]]:
    """The non-null parameters of a Bind body, each with whether it is in binary format. Empty if the body is malformed."""
    try:
        at = body.index(b"\0", body.index(b"\0") + 1) + 1
        (count,) = struct.unpack_from("!H", body, at)
        formats = struct.unpack_from(f"!{count}H", body, at + 2)
        at += 2 + 2 * count
        (total,) = struct.unpack_from("!H", body, at)
        at += 2
        found = []
        for number in range(total):
            (size,) = struct.unpack_from("!i", body, at)
            at += 4
            if size < 0:
                continue
            binary = bool(formats[number if count > 1 else 0]) if count else False
            found.append((body[at : at + size], binary))
            at += size
    except (ValueError, struct.error, IndexError):
        return []
    return found
