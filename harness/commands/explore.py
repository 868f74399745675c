"""Every order of a small case."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.commands.ending import EXIT_OF, run_to_the_end, say
from harness.commands.options import AllowExisting, Json, Pg, Runs, Seed, Server, SubjectArgument, subject_at
from harness.contracts.problem import EnvironmentFailed

EXAMPLE = "queueproof explore my-queue/ --jobs 2 --budget 30s"


def command(
    subject: SubjectArgument = None,
    workers: Annotated[int | None, typer.Option(min=1, max=9, help="Workers of one case.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=9, help="Jobs of that case.")] = None,
    expiries: Annotated[int | None, typer.Option(min=0, max=9, help="How often a lease may end in it.")] = None,
    kills: Annotated[int | None, typer.Option(min=0, max=9, help="How many workers may be killed in it.")] = None,
    severs: Annotated[int | None, typer.Option(min=0, max=9, help="How many replies may be lost in it.")] = None,
    polls: Annotated[int | None, typer.Option(min=0, max=9, help="Looks per worker that bring nothing.")] = None,
    budget: Annotated[str, typer.Option(help="How long to explore, such as 60s.", metavar="TIME")] = "60s",
    replay: Annotated[str, typer.Option(help="Run one schedule, such as w1w2w1w2.", metavar="SCHEDULE")] = "",
    spec: Annotated[
        Path | None, typer.Option(help="Write a counterexample for isolationtester.", metavar="FILE")
    ] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Run every order of a small case on real PostgreSQL, and show the one that breaks it."""
    import json

    from harness.explore.face import as_data, as_text
    from harness.explore.run import options_of, run_exploration
    from harness.postgres.options import parse_server
    from harness.run import keep as kept

    number = seed if seed is not None else kept.new_seed()
    asked = {
        "workers": workers, "jobs": jobs, "expiries": expiries, "kills": kills, "severs": severs, "polls": polls
    }  # fmt: skip
    options = options_of(asked, budget, replay, number)
    option = parse_server(server, pg)
    loaded = subject_at(subject)
    folder = kept.new_run(runs, number)
    argument = str(subject) if subject is not None else None
    report = run_to_the_end(
        run_exploration(loaded, argument, option, folder, options, say, allow_existing=allow_existing)
    )
    print(json.dumps(as_data(report), indent=2, ensure_ascii=False) if as_json else as_text(report))
    if spec is not None:
        _write_spec(spec, report.counterexample)
    return EXIT_OF[report.verdict]


def _write_spec(file: Path, found: Any) -> None:
    if found is None or not found.spec:
        say(f"{file} was not written: {found.why_no_spec if found is not None else 'there is no counterexample'}")
        return
    try:
        file.write_text(found.spec, encoding="utf-8")
    except OSError as error:
        raise EnvironmentFailed(f"cannot write {file}: {error.strerror}") from error
    say(f"wrote {file}; run it with isolationtester's connection string as its argument")
