"""A starter."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.ending import HELD, say
from harness.commands.options import Json


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Made when it does not exist.")],
    kind: Annotated[str, typer.Option(help="sql, python or shell.")] = "sql",
    as_json: Json = False,
) -> int:
    """Write a starter: a subject that works, to be changed into yours."""
    import json

    from harness.run.starters import write_starter

    written = [str(path) for path in write_starter(kind, folder)]
    print(json.dumps(written, indent=2) if as_json else "\n".join(written))
    say(f"now try: queueproof gate {shlex.quote(str(folder))}")
    return HELD
