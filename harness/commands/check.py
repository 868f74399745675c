"""A stored history, judged again."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.ending import EXIT_OF, say
from harness.commands.options import Json
from harness.contracts.problem import BadInput
from harness.contracts.verdict import Verdict


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a file in it.")],
    as_json: Json = False,
) -> int:
    """Judge a stored history again, without a server."""
    import json

    from harness.invariants import discover as discover_invariants
    from harness.run.judge import judge_history
    from harness.run.keep import HISTORY, find_run

    folder = find_run(run)
    truncated: list[str] = []
    judged = {
        name: each
        for name, each in judge_history(folder / HISTORY, truncated=truncated.append).items()
        if each.scenario != "probe"
    }
    if not judged:
        raise BadInput(f"RUN: {folder / HISTORY} holds no play that could be judged")
    verdict = Verdict.worst(each.verdict for each in judged.values())
    mends = {invariant.name: invariant.mend for invariant in discover_invariants()}
    if as_json:
        rows = [
            {
                "play": name,
                "verdict": each.verdict.value,
                "reason": each.reason,
                "findings": [
                    {"invariant": f.invariant, "sentence": f.sentence, "mend": mends[f.invariant]}
                    for f in each.findings
                ],
                "missing": list(each.missing),
            }
            for name, each in judged.items()
        ]
        print(json.dumps({"verdict": verdict.value, "plays": rows}, indent=2))
    else:
        for name, each in judged.items():
            print(f"{each.verdict.value:14} {name}: {each.reason}")
        for caught in dict.fromkeys(finding.invariant for each in judged.values() for finding in each.findings):
            print(f"{caught} is usually mended by: {mends[caught]}")
        print(f"{verdict.value}: {len(judged)} plays judged from {folder / HISTORY}")
    for told in truncated:
        say(told)
    return EXIT_OF[verdict]
