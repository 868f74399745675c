"""One calm job, and what can be seen of it."""

from pathlib import Path

from harness.commands.ending import HELD, run_to_the_end, say
from harness.commands.options import AllowExisting, Json, Pg, Runs, Seed, Server, SubjectArgument, subject_at

EXAMPLE = "queueproof probe my-queue/"


def command(
    subject: SubjectArgument = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """One calm job: what was seen, which points and scenarios apply, and why the rest do not."""
    import json

    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.gate import run_probe
    from scenarios import discover as discover_scenarios

    option = parse_server(server, pg)
    loaded = subject_at(subject)
    number = seed if seed is not None else kept.new_seed()
    folder = kept.new_run(runs, number)
    say(f"  probing {loaded.name} on {option.shown()} ...")
    probed, version, source = run_to_the_end(run_probe(loaded, option, folder, number, allow_existing=allow_existing))
    applies: dict[str, str] = {}
    for name, scenario in discover_scenarios().items():
        reasons = [why for need in scenario.needs if (why := need.missing(loaded, probed.learned))]
        applies[name] = reasons[0] if reasons else "yes"
    learned = {change: list(found) for change, found in sorted(probed.book.learned().items())}
    stops = {point.value: told for point, told in probed.stops_at.items()}
    if as_json:
        result = {
            "subject": loaded.name,
            "server": f"{version} ({source})",
            "changes": sorted(probed.learned),
            "statements": learned,
            "points": stops,
            "scenarios": applies,
        }
        print(json.dumps(result, indent=2))
        return HELD
    print(f"{loaded.name}, on PostgreSQL {version} ({source})\n")
    print("What its statements were seen to do:")
    for change, statements in learned.items():
        for statement in statements:
            print(f"  {change:9} {_cut(statement, 140)}")
    print("\nWhere a worker can be stopped:")
    for point, told in stops.items():
        print(f"  {point:12} {told}")
    print("\nWhich scenarios apply:")
    for name, told in applies.items():
        print(f"  {name:56} {told}")
    return HELD


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
