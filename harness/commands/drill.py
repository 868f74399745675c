"""Drills: faults injected into a working queue."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.accepted import known_from, known_of, near
from harness.commands.ending import HELD, run_to_the_end, say, terminal_width, typed
from harness.commands.faces import keep_and_show
from harness.commands.options import AllowExisting, Json, Pg, Runs, Seed, Server, subject_at
from harness.contracts.problem import BadInput

EXAMPLE = "queueproof drill server_restarted_fast sink_down worker_paused my-queue/"


def command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="NAME… [SUBJECT]", help="None: the faults are listed.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Each fault, and the usual compositions.")] = False,
    random: Annotated[int | None, typer.Option(help="Compose faults from this seed.", metavar="SEED")] = None,
    lasts: Annotated[str, typer.Option("--for", help="How long, with --random.", metavar="TIME")] = "10m",
    budget: Annotated[
        str, typer.Option(help="The backlog has to be normal again so long after.", metavar="TIME")
    ] = "60s",
    hold: Annotated[str | None, typer.Option(help="Keep the faults up so long.", metavar="TIME")] = None,
    arrival: Annotated[str, typer.Option(help="Jobs that arrive meanwhile.", metavar="RATE")] = "6/s",
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many workers.")] = 3,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    known: Annotated[Path | None, typer.Option(help="Findings that are accepted, as TOML.", metavar="FILE")] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Inject faults into a working queue, told live, and judge loss, duplication and recovery."""
    from harness.capacity.quantities import parse_duration, parse_rate
    from harness.faults import discover as discover_faults
    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.drill import DrillOptions, Listener, run_drills
    from reports import as_text

    names, subject = _names_and_subject(words or [], [*discover_faults()])
    if not names and not every and random is None:
        if subject is not None:
            raise BadInput(
                f"NAME: {str(subject)!r} is a subject; name at least one fault before it; see: queueproof drill"
            )
        for name, told in discover_faults().items():
            print(f"  {name:42} {told.docstring.splitlines()[0]}")
        return HELD
    if sum((bool(names), every, random is not None)) > 1:
        raise BadInput("NAME, --all and --random: choose one of them")
    option = parse_server(server, pg)
    number = random if random is not None else seed if seed is not None else kept.new_seed()
    loaded = subject_at(subject)
    options = DrillOptions(
        subject=loaded,
        subject_argument=str(subject) if subject is not None else None,
        server=option,
        folder=kept.new_run(runs, number),
        command=typed(),
        seed=number,
        names=names,
        every=every,
        lasts_seconds=float(parse_duration(lasts, "--for")) if random is not None else None,
        hold_seconds=float(parse_duration(hold, "--hold", zero=True)) if hold is not None else None,
        budget_seconds=float(parse_duration(budget, "--budget")),
        jobs_per_second=float(parse_rate(arrival, "--arrival")),
        workers=workers,
        fail_fast=fail_fast,
        allow_existing=allow_existing,
        known=known_from(known) | known_of(loaded),
    )
    listener = Listener(
        doing=lambda what: say(f"  {what} ..."),
        moment=lambda told: say(f"  {told}"),
        played=lambda play: say(as_text.line(play, width=terminal_width())),
    )
    document = run_to_the_end(run_drills(options, listener))
    return keep_and_show(document, options.folder, as_json=as_json, live=True)


def _names_and_subject(words: Sequence[str], faults: Sequence[str]) -> tuple[tuple[str, ...], Path | None]:
    """Names of faults, and at the end, perhaps, a subject. Raises BadInput with each word that is neither."""
    last = Path(words[-1]) if words and words[-1] not in faults and Path(words[-1]).exists() else None
    names = tuple(words[:-1] if last is not None else words)
    mistakes = [
        f"NAME {word!r}: no fault; a subject stands last, and there is one only"
        if Path(word).exists()
        else f"NAME {word!r}: neither a fault nor a subject{near(word, faults, 'queueproof drill')}"
        for word in names
        if word not in faults
    ]
    if mistakes:
        raise BadInput(*mistakes)
    return names, last
