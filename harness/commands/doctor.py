"""Whether this machine can do it."""

from typing import Annotated

import typer

from harness.commands.ending import FAILED, HELD, run_to_the_end
from harness.commands.options import Json, Pg, Server


def command(
    clean: Annotated[
        str | None, typer.Option(help="Remove what a killed run left in this database.", metavar="DSN")
    ] = None,
    server: Server = "embedded",
    pg: Pg = None,
    as_json: Json = False,
) -> int:
    """Check that this machine can run a gate, and say what is missing."""
    import json

    from harness.postgres.options import parse_server
    from harness.run.doctor import clean_up, examine

    if clean is not None:
        done = run_to_the_end(clean_up(clean))
        print(json.dumps(done, indent=2) if as_json else "\n".join(done))
        return HELD
    found = run_to_the_end(examine(parse_server(server, pg)))
    if as_json:
        print(json.dumps([{"what": f.what, "fine": f.fine, "told": f.told} for f in found], indent=2))
    else:
        for finding in found:
            print(f"{'ok' if finding.fine else 'missing':8} {finding.what}: {finding.told}")
    return HELD if all(finding.fine for finding in found) else FAILED
