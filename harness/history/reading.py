"""Reads a history file back, entry by entry, and says exactly where a bad line is.

A last line without its end is what our own SIGKILL leaves behind: it is left out and reported, never guessed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.contracts.problem import BadInput
from harness.history.events import Entry

Truncated = Callable[[str], None]
_PIECE_BYTES = 1 << 20
_DECODER = msgspec.json.Decoder(Entry)


def read_history(path: Path, *, truncated: Truncated | None = None) -> Iterator[Entry]:
    """The entries of ``path`` in their order. ``truncated`` is told, in a sentence, of a last line that has no end.

    Raises BadInput naming the file and the line when a line is no entry, or when entries are missing or out of order.
    """
    expected = 1
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                piece += file.readline()
                if not piece.endswith(b"\n"):
                    piece, _, rest = piece.rpartition(b"\n")
                    if truncated is not None and rest:
                        number = expected + (piece.count(b"\n") + 1 if piece else 0)
                        truncated(
                            f"{path}, line {number}: the last line has no end and was left out; the recording was cut off"
                        )
                for entry in _decode(path, piece, expected):
                    if entry.n != expected:
                        raise BadInput(
                            f"{path}, line {expected}: entry {entry.n} stands where entry {expected} belongs"
                        )
                    expected += 1
                    yield entry
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def _decode(path: Path, piece: bytes, first: int) -> list[Entry]:
    """The entries of whole lines, the first of which has this number."""
    try:
        entries = _DECODER.decode_lines(piece)
    except (msgspec.DecodeError, UnicodeDecodeError):
        entries = []
    # Decoding in one go passes over empty lines and cannot say where it failed: then look line by line.
    lines = piece.splitlines() if not entries and piece else []
    for number, line in enumerate(lines, start=first):
        try:
            entries.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}, line {number}: not an entry of a history: {error}") from error
    return entries
