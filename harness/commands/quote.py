"""Offers at equal thresholds."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.ending import BROKEN, HELD, say
from harness.commands.options import Json
from harness.contracts.problem import EnvironmentFailed

EXAMPLE = "queueproof quote offers.toml --size .queueproof/runs/latest --gate GATE_RUN"


def _example(wanted: bool) -> None:
    if wanted:
        from importlib.resources import files

        text = files("harness.procurement").joinpath("example_quotes.toml").read_text(encoding="utf-8")
        print(text, end="")
        raise typer.Exit


def command(
    quotes: Annotated[Path, typer.Argument(metavar="QUOTES.toml", help="The offers.")],
    size_run: Annotated[
        Path, typer.Option("--size", help="The load run whose thresholds they are held to.", metavar="RUN")
    ],
    gate_run: Annotated[
        Path | None, typer.Option("--gate", help="A passing gate of the same subject.", metavar="RUN")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A folder for quotes.csv and the report.", metavar="FOLDER")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print every price as CSV.")] = False,
    example: Annotated[  # noqa: ARG001  its callback has answered already
        bool, typer.Option("--example", help="Print a QUOTES.toml to start from.", is_eager=True, callback=_example)
    ] = False,
    as_json: Json = False,
) -> int:
    """Price several offers at equal thresholds: exit code 1 when none has shown that it meets them all."""
    from harness.load.quoting import quote as price_offers
    from harness.run import keep as kept
    from reports import as_text, discover

    quoted = price_offers(quotes, size_run, gate_run)
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFailed(f"cannot make {output}: {error.strerror}") from error
        kept.write(output, "quotes.csv", quoted.csv)
        for face in discover().values():
            kept.write(output, face.FILENAME, face.render(quoted.document))
        say(f"quotes.csv and reports are in {output}/")
    if as_csv:
        sys.stdout.buffer.write(quoted.csv)
    elif as_json:
        sys.stdout.buffer.write(discover()["json"].render(quoted.document))
    else:
        sys.stdout.buffer.write(as_text.tables(quoted.document))
    sys.stdout.flush()
    return HELD if quoted.any_meets else BROKEN
