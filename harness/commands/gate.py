"""The gate: a queue against the scenarios."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.accepted import known_from, known_of
from harness.commands.ending import run_to_the_end, say, terminal_width, typed
from harness.commands.faces import colour_on, keep_and_show
from harness.commands.options import AllowExisting, Json, Pg, Runs, Seed, Server, SubjectArgument, subject_at

EXAMPLE = "queueproof gate my-queue/ --only killed --server local"


def command(
    subject: SubjectArgument = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Scenarios with this in their name; A,B or repeated for several.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(help="Not the scenarios with this in their name; A,B as above.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="Play each scenario this often.")] = 1,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Play on after a duplicate execution.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the databases, and print how to open them.")] = False,
    known: Annotated[Path | None, typer.Option(help="Findings that are accepted, as TOML.", metavar="FILE")] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    side_by_side: Annotated[int, typer.Option(min=1, max=64, help="How many scenarios play at once.")] = 6,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Play the scenarios against a queue on real PostgreSQL, and judge what happened."""
    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.gate import GateOptions, Listener, choose, run_gate
    from reports import as_text
    from scenarios import discover as discover_scenarios

    chosen = choose(discover_scenarios(), only or [], skip or [])
    option = parse_server(server, pg)
    accepted = known_from(known)
    loaded = subject_at(subject)
    accepted |= known_of(loaded)
    number = seed if seed is not None else kept.new_seed()
    folder = kept.new_run(runs, number)
    options = GateOptions(
        subject=loaded,
        subject_argument=str(subject) if subject is not None else None,
        scenarios=chosen,
        server=option,
        folder=folder,
        command=typed(),
        seed=number,
        repeat=repeat,
        fail_fast=fail_fast,
        keep_going=keep_going,
        keep=keep,
        side_by_side=side_by_side,
        allow_existing=allow_existing,
        known=accepted,
    )
    colour = colour_on(sys.stderr)
    listener = Listener(
        doing=lambda what: say(f"  {what} ..."),
        played=lambda play: say(as_text.line(play, colour=colour, width=terminal_width())),
    )
    document = run_to_the_end(run_gate(options, listener))
    return keep_and_show(document, folder, as_json=as_json, live=True)
