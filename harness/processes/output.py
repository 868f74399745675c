"""What a subject's own program has printed, made fit to show and to keep: no control characters, no password of ours."""

import mmap
from pathlib import Path
from urllib.parse import quote

TAIL_LINE_CHARACTERS = 500
HIDDEN = "***"


def spellings(secret: str | None) -> tuple[str, ...]:
    """A password as it stands in PGPASSWORD and, percent-encoded, in DATABASE_URL; nothing when there is none."""
    return tuple(dict.fromkeys((secret, quote(secret, safe="")))) if secret else ()


def printable_tail(output: bytes, lines: int, secret: str | None = None) -> str:
    """The last lines: bytes that are no text replaced, control characters escaped, the password starred out."""
    text = output.decode("utf-8", "replace")
    for spelling in spellings(secret):
        text = text.replace(spelling, HIDDEN)
    return "\n".join(_printable(line) for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")[-lines:])


def blot_out(log: Path, secret: str | None) -> None:
    """Star the password out of a file in place: others may still be appending to it. Raises OSError."""
    wanted = [spelling.encode() for spelling in spellings(secret)]
    if not wanted or not log.exists() or log.stat().st_size == 0:
        return
    with log.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        for spelling in wanted:
            place = content.find(spelling)
            while place >= 0:
                content[place : place + len(spelling)] = b"*" * len(spelling)
                place = content.find(spelling, place + len(spelling))


def _printable(line: str) -> str:
    shown = "".join(
        character if character.isprintable() or character == "\t" else ascii(character)[1:-1]
        for character in line[: TAIL_LINE_CHARACTERS + 1]
    )
    return shown if len(line) <= TAIL_LINE_CHARACTERS else f"{shown[:TAIL_LINE_CHARACTERS]}…"
