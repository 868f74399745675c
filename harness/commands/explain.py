"""What one of them means."""

from collections.abc import Collection
from typing import Annotated, Any

import typer

from harness.commands.accepted import near
from harness.commands.ending import HELD
from harness.commands.options import Json
from harness.contracts.problem import BadInput

MOST_NAMED = 8


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="A scenario or an invariant, as reports print it or a part of it; or a requirement's id.",
        ),
    ],
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
    name = _meant(" ".join(words), [*scenarios, *invariants, *titles()])
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
            "why": _why(invariant.judge),
            "serves": invariant.serves,
            "broken_queue": invariant.broken_queue,
            "mend": invariant.mend,
        }
        text = [f"{name}\n\n{told['judges']}\n\n{told['why']}\n"]
        text += [f"Usually mended by: {invariant.mend}\n"]
        text += [f"It serves {', '.join(invariant.serves)}. It must catch the broken queue {invariant.broken_queue}."]
    else:
        told = {"requirement": name, "title": titles()[name], "proven_by": proofs(scenarios.values())[name]}
        text = [f"{name}: {told['title']}\n", *(f"  {proof}" for proof in told["proven_by"] or ("nothing yet",))]
    print(json.dumps(told, indent=2) if as_json else "\n".join(text))
    return HELD


def _meant(said: str, names: Collection[str]) -> str:
    """The one name that is meant: with blanks for underscores as reports print it, in any case, or by a part of it."""
    plain = "_".join(said.casefold().split())
    found = [name for name in names if name.casefold() == plain] or [name for name in names if plain in name.casefold()]
    if len(found) == 1:
        return found[0]
    if not found or not plain:
        raise BadInput(f"NAME {said!r}: no scenario, invariant or requirement{near(plain, names)}")
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise BadInput(f"NAME {said!r}: a part of several names: {', '.join(found[:MOST_NAMED])}{more}")


def _why(judge: Any) -> str:
    """What the invariant's own module says of its rule, without where that comes from."""
    import inspect
    import sys

    told = inspect.cleandoc(sys.modules[judge.__module__].__doc__ or "")
    return told.partition("Source:")[0].strip()
