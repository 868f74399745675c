"""Reads a history file back, entry by entry, and says exactly where a bad line is.

A last line without its end is what our own SIGKILL leaves behind: it is left out and reported, never guessed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.contracts.problem import BadInput
from harness.history.events import Entry

Truncated = Callable[[str], None]


def read_history(path: Path, *, truncated: Truncated | None = None) -> Iterator[Entry]:
    """The entries of ``path`` in their order. ``truncated`` is told, in a sentence, of a last line that has no end.

    Raises BadInput naming the file and the line when a line is no entry, or when entries are missing or out of order.
    """
    decode = msgspec.json.Decoder(Entry).decode
    expected = 1
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    if truncated is not None:
                        truncated(
                            f"{path}, line {number}: the last line has no end and was left out; the recording was cut off"
                        )
                    return
                try:
                    entry = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise BadInput(f"{path}, line {number}: not an entry of a history: {error}") from error
                if entry.n != expected:
                    raise BadInput(f"{path}, line {number}: entry {entry.n} stands where entry {expected} belongs")
                expected += 1
                yield entry
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
