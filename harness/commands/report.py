"""A run told in another face."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.ending import HELD, say
from harness.contracts.problem import BadInput, EnvironmentFailed


def command(
    run: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs of one subject, such as a gate and a load.")
    ],
    face: Annotated[str, typer.Option("--as", help="html, json, junit, markdown or text.", metavar="FACE")] = "text",
    output: Annotated[Path | None, typer.Option(help="Write to this file.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --as json.")] = False,
) -> int:
    """Render a run's document in another face; a gate and a load run together make one acceptance report."""
    from harness.run.merging import merged, read_document
    from reports import discover

    faces = discover()
    face = "json" if as_json else face
    if face not in faces:
        raise BadInput(f"--as {face!r}: not a face; there are {', '.join(faces)}")
    content = faces[face].render(merged([read_document(each) for each in run]))
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise EnvironmentFailed(f"cannot write {output}: {error.strerror}") from error
        say(f"wrote {output}")
    return HELD
