"""Options that several commands share, and what stands behind them."""

from pathlib import Path
from typing import Annotated, Any

import typer

SubjectArgument = Annotated[
    Path | None,
    typer.Argument(metavar="SUBJECT", help="A folder or a subject.toml; left out, the reference queue."),
]
Server = Annotated[
    str,
    typer.Option(
        help="embedded, local[:BINDIR], docker[:IMAGE], or postgresql://user@host:port/database.", metavar="SERVER"
    ),
]
Pg = Annotated[str | None, typer.Option("--pg", help="PostgreSQL's major version: 16, 17 or 18.", metavar="VERSION")]
Seed = Annotated[int | None, typer.Option(help="Makes the same plan again.", metavar="N")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
AllowExisting = Annotated[bool, typer.Option(help="Use a database of yours although it is not empty.")]
Runs = Annotated[Path, typer.Option(help="Where .queueproof/ is made.", metavar="FOLDER")]


def word(help_: str, metavar: str) -> Any:
    return typer.Option(help=help_, metavar=metavar)


def subject_at(named: Path | None) -> Any:
    from harness.run.subject_file import load_subject, reference_queue_folder

    return load_subject(named if named is not None else reference_queue_folder())
