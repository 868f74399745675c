"""Figures about ourselves."""

import signal
from typing import Annotated

import typer

from harness.commands.ending import HELD, answer_signals
from harness.commands.options import Json
from harness.contracts.problem import BadInput


def command(
    name: Annotated[str, typer.Argument(help="Left out, the names are listed.")] = "",
    as_json: Json = False,
) -> int:
    """Measure ratios in one run; these are figures, not tests."""
    import json

    from harness.bench import discover as discover_benches

    benches = discover_benches()
    if name not in benches:
        if name:
            raise BadInput(f"NAME {name!r}: no such benchmark; there are {', '.join(benches)}")
        titles = {each: told.title for each, told in benches.items()}
        print(json.dumps(titles, indent=2) if as_json else "\n".join(f"  {k:10} {v}" for k, v in titles.items()))
        return HELD
    answer_signals(signal.default_int_handler)
    result = benches[name].measure()
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        print(benches[name].as_text(result))
    return HELD
