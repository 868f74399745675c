"""What one of them means."""

from collections.abc import Collection
from typing import Annotated, Any

import typer

from harness.commands.accepted import near
from harness.commands.ending import HELD
from harness.commands.options import Json
from harness.contracts.problem import BadInput

MOST_NAMED = 8
Told = tuple[dict[str, Any], list[str]]
"""What is told, for a program and in lines for a person."""


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="A scenario, an invariant or a fault, as reports print it or a part of it; a requirement's id; a key of"
            " subject.toml.",
        ),
    ],
    as_json: Json = False,
) -> int:
    """Tell what a scenario, invariant, fault, requirement or key of subject.toml means."""
    import json

    from harness.faults import discover as discover_faults
    from harness.invariants import discover as discover_invariants
    from harness.run.requirements import titles
    from scenarios import discover as discover_scenarios

    scenarios = discover_scenarios()
    invariants = {invariant.name: invariant for invariant in discover_invariants()}
    faults = discover_faults()
    name, also = _meant(" ".join(words), [*scenarios, *invariants, *faults, *titles()], faults.values())
    if name in scenarios:
        told, text = _scenario(scenarios[name])
    elif name in invariants:
        told, text = _invariant(invariants[name])
    elif name in faults:
        told, text = _fault(faults[name])
    elif name in titles():
        told, text = _requirement(name)
    else:
        told, text = _key(name)
    if also:
        told["also"] = also
        text += ["", f"The same word is in: {_listed(also)}."]
    print(json.dumps(told, indent=2) if as_json else "\n".join(text))
    return HELD


def _scenario(scenario: Any) -> Told:
    import inspect

    told = {
        "scenario": scenario.name,
        "story": inspect.cleandoc(scenario.docstring),
        "serves": scenario.serves,
        "must_happen": [fact.sentence for fact in scenario.must_happen],
        "must_hold": {invariant.name: invariant.title for invariant in scenario.must_hold},
    }
    text = [f"{scenario.name}\n\n{told['story']}\n", f"It serves {', '.join(scenario.serves)}."]
    text += ["What must have happened, or it is inconclusive:", *(f"  {fact}" for fact in told["must_happen"])]
    text += ["What must hold:", *(f"  {judge}: {title}" for judge, title in told["must_hold"].items())]
    return told, text


def _invariant(invariant: Any) -> Told:
    import inspect

    told = {
        "invariant": invariant.name,
        "judges": inspect.getdoc(invariant.judge) or invariant.title,
        "why": _why(invariant.judge),
        "serves": invariant.serves,
        "broken_queue": invariant.broken_queue,
        "mend": invariant.mend,
    }
    text = [f"{invariant.name}\n\n{told['judges']}\n\n{told['why']}\n"]
    text += [f"Usually mended by: {invariant.mend}\n"]
    text += [f"It serves {', '.join(invariant.serves)}. It must catch the broken queue {invariant.broken_queue}."]
    return told, text


def _fault(fault: Any) -> Told:
    told = {
        "fault": fault.name,
        "title": fault.title,
        "story": fault.docstring,
        "strikes": fault.strikes,
        "needs": [_need(need) for need in fault.needs],
        "holds_seconds": fault.holds_seconds,
        "holds_leases": fault.holds_leases,
        "excuses": fault.excuses,
    }
    leases = f", {fault.holds_leases:g} leases at least" if fault.holds_leases else ""
    held = (
        f"for {fault.holds_seconds:g} s{leases} (drill --hold)"
        if fault.holds_seconds
        else "not at all: it is over at once"
    )
    text = [f"{fault.name}: {fault.title}\n\n{fault.docstring}\n"]
    text += [f"strikes   the {fault.strikes}"]
    text += [f"needs     {'; '.join(told['needs']) or 'nothing'}"]
    text += [f"held up   {held}"]
    text += [f"excuses   {', '.join(fault.excuses)}"] if fault.excuses else []
    return told, [*text, "", f"To see it: queueproof drill {fault.name}"]


def _need(need: Any) -> str:
    """What is needed, by the need's own sentence: "Needs ..."."""
    import inspect

    return inspect.cleandoc(need.__doc__).splitlines()[0].removeprefix("Needs ").rstrip(".")


def _requirement(name: str) -> Told:
    from harness.run.requirements import proofs, titles
    from scenarios import discover as discover_scenarios

    proven_by = proofs(discover_scenarios().values())[name]
    told = {"requirement": name, "title": titles()[name], "proven_by": proven_by}
    return told, [f"{name}: {told['title']}\n", *(f"  {proof}" for proof in proven_by or ("nothing yet",))]


def _key(path: str) -> Told:
    from harness.run.subject_keys import KEYS, default, table_of, takes
    from harness.run.subject_tables import keys_of, model_at

    key, left_out, table = KEYS[path], default(path), table_of(path)
    inside = {name: KEYS[f"{path}.{name}"].meaning for name in keys_of(model_at(tuple(path.split("."))))}
    told: dict[str, Any] = {
        "key": path,
        "meaning": key.meaning,
        "takes": takes(path),
        "required": left_out is None,
        "left_out": left_out,
        "table": table,
        "example": key.example,
    }
    text = [f"{path}: {key.meaning}.", ""]
    text += [f"takes     {told['takes'] if not inside else 'a table of the keys below'}"]
    text += [f"left out  {left_out if left_out is not None else 'never: it must be given'}"]
    text += [f"example   {key.example}" + (f"   (in [{table}])" if not inside else "")]
    if inside:
        told["keys"] = inside
        wide = max(map(len, inside))
        text += ["", *(f"  {name:{wide}}  {meaning}" for name, meaning in inside.items())]
    return told, text


def _meant(said: str, names: Collection[str], faults: Collection[Any]) -> tuple[str, list[str]]:
    """The one name that is meant and, where a key of subject.toml or a fault is called so, what else has the word in its name.

    Names are understood with blanks for underscores, as reports print them, in any case, or by a part of them. A key is
    called by its path, with or without ``subject.``, or by its last word, a fault also by its title, as histories print it:
    that wins over a part of another name.
    """
    from harness.run.subject_keys import KEYS, named

    plain = "_".join(said.casefold().split())
    keys = named(plain)
    parts = [name for name in names if plain in name.casefold()]
    whole = [name for name in names if name.casefold() == plain]
    titled = [each.name for each in faults if "_".join(each.title.casefold().split()) == plain]
    found = whole or keys or titled or parts
    others = [name for name in (*keys, *parts) if name not in found]
    if not found or not plain:
        known = [*names, *(each.title for each in faults), *(path.removeprefix("subject.") for path in KEYS)]
        raise BadInput(
            f"NAME {said!r}: no scenario, invariant, fault, requirement or key of subject.toml{near(plain, known)}"
        )
    if len(found) > 1:
        raise BadInput(f"NAME {said!r}: a part of several names: {_listed([*found, *others])}")
    return found[0], others if keys or (titled and not whole) else []


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _why(judge: Any) -> str:
    """What the invariant's own module says of its rule, without where that comes from."""
    import inspect
    import sys

    told = inspect.cleandoc(sys.modules[judge.__module__].__doc__ or "")
    return told.partition("Source:")[0].strip()
