"""What a run leaves and prints: every face in its folder, one of them on standard output."""

import os
import sys
from pathlib import Path
from typing import Any

from harness.commands.ending import EXIT_OF, say, terminal_width
from harness.contracts.verdict import Verdict


def colour_on(stream: Any) -> bool:
    """Whether whoever reads it sees colours, and wants to."""
    return bool(stream.isatty()) and "NO_COLOR" not in os.environ


def keep_and_show(document: Any, folder: Path, *, as_json: bool, live: bool = False) -> int:
    """The exit code of its verdict. ``live``: standard error has had a line per play as it ended."""
    from harness.run import keep as kept
    from reports import as_text, discover

    faces = discover()
    for face in faces.values():
        kept.write(folder, face.FILENAME, face.render(document))
    if as_json:
        sys.stdout.buffer.write(faces["json"].render(document))
    else:
        told = live and sys.stdout.isatty() and sys.stderr.isatty()  # both are read on one terminal
        sys.stdout.buffer.write(
            as_text.render(document, colour=colour_on(sys.stdout), width=terminal_width(), told=told)
        )
    sys.stdout.flush()
    say(f"reports are in {folder}/")
    return EXIT_OF[Verdict(document.verdict)]
