"""What one of them means."""

from typing import Annotated, Any

import typer

from harness.commands.accepted import near
from harness.commands.ending import HELD
from harness.commands.options import Json
from harness.contracts.problem import BadInput


def command(
    name: Annotated[str, typer.Argument(help="A scenario, an invariant, or a requirement's id.")],
    as_json: Json = False,
) -> int:
    """Tell what a scenario does, what an invariant judges, or what proves a requirement."""
    import inspect
    import json

    from harness.invariants import discover as discover_invariants
    from harness.run.requirements import proofs, titles
    from scenarios import discover as discover_scenarios

    scenarios = discover_scenarios()
    invariants = {invariant.name: invariant for invariant in discover_invariants()}
    told: dict[str, Any]
    if name in scenarios:
        scenario = scenarios[name]
        told = {
            "scenario": name,
            "story": inspect.cleandoc(scenario.docstring),
            "serves": scenario.serves,
            "must_happen": [fact.sentence for fact in scenario.must_happen],
            "must_hold": {invariant.name: invariant.title for invariant in scenario.must_hold},
        }
        text = [f"{name}\n\n{told['story']}\n", f"It serves {', '.join(scenario.serves)}."]
        text += ["What must have happened, or it is inconclusive:", *(f"  {fact}" for fact in told["must_happen"])]
        text += ["What must hold:", *(f"  {judge}: {title}" for judge, title in told["must_hold"].items())]
    elif name in invariants:
        invariant = invariants[name]
        told = {
            "invariant": name,
            "judges": inspect.getdoc(invariant.judge) or invariant.title,
            "serves": invariant.serves,
            "broken_queue": invariant.broken_queue,
        }
        text = [f"{name}\n\n{told['judges']}\n"]
        text += [f"It serves {', '.join(invariant.serves)}. It must catch the broken queue {invariant.broken_queue}."]
    elif name in titles():
        told = {"requirement": name, "title": titles()[name], "proven_by": proofs(scenarios.values())[name]}
        text = [f"{name}: {told['title']}\n", *(f"  {proof}" for proof in told["proven_by"] or ("nothing yet",))]
    else:
        meant = near(name, [*scenarios, *invariants, *titles()])
        raise BadInput(f"NAME {name!r}: no scenario, invariant or requirement{meant}")
    print(json.dumps(told, indent=2) if as_json else "\n".join(text))
    return HELD
