"""What there is."""

from typing import Annotated

import typer

from harness.commands.ending import HELD
from harness.commands.options import Json


def command(
    requirements: Annotated[bool, typer.Option("--requirements", help="Each requirement, and what proves it.")] = False,
    as_json: Json = False,
) -> int:
    """List scenarios, invariants and faults, or requirements with what proves them."""
    import json

    from harness.faults import discover as discover_faults
    from harness.invariants import discover as discover_invariants
    from harness.run.requirements import proofs, titles
    from scenarios import discover as discover_scenarios

    scenarios = discover_scenarios()
    if requirements:
        proven = proofs(scenarios.values())
        if as_json:
            print(json.dumps({n: {"title": titles()[n], "proven_by": list(p)} for n, p in proven.items()}, indent=2))
            return HELD
        for name, given in proven.items():
            print(f"{name:4} {titles()[name]}")
            print(f"     {', '.join(given) if given else 'nothing yet'}")
        return HELD
    invariants = discover_invariants()
    faults = discover_faults()
    if as_json:
        listing = {
            "scenarios": [
                {"name": s.name, "serves": s.serves, "first": _first(s.docstring)} for s in scenarios.values()
            ],
            "invariants": [{"name": i.name, "serves": i.serves, "title": i.title} for i in invariants],
            "faults": [
                {"name": f.name, "title": f.title, "strikes": f.strikes, "first": _first(f.docstring)}
                for f in faults.values()
            ],
        }
        print(json.dumps(listing, indent=2))
        return HELD
    print("Scenarios")
    for scenario in scenarios.values():
        print(f"  {scenario.name:56} {_first(scenario.docstring)}")
    print("\nInvariants")
    for invariant in invariants:
        print(f"  {invariant.name:28} {invariant.title}")
    print("\nFaults, for a drill")
    for fault in faults.values():
        print(f"  {fault.name:42} {_first(fault.docstring)}")
    return HELD


def _first(docstring: str) -> str:
    return docstring.splitlines()[0]
