"""The catalogue of what the product must cover, and what proves each line."""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from harness.contracts.scenario import Scenario
from harness.invariants import discover


@cache
def titles() -> dict[str, str]:
    """Every requirement's id and what it asks for, in order."""
    tables = tomllib.loads(files("harness.run").joinpath("requirements.toml").read_text(encoding="utf-8"))
    return {name: title for table in tables.values() for name, title in table.items()}


@cache
def other_proofs() -> dict[str, tuple[str, ...]]:
    """Per requirement, the tests, soaks, benchmarks and commands that prove it, as ``proofs.toml`` names them."""
    named = tomllib.loads(files("harness.run").joinpath("proofs.toml").read_text(encoding="utf-8"))
    return {name: tuple(given) for name, given in named.items()}


def proofs(scenarios: Iterable[Scenario]) -> dict[str, tuple[str, ...]]:
    """Per requirement, what proves it: scenarios and invariants that serve it, then the rest; empty where nothing does yet."""
    found: dict[str, list[str]] = {name: [] for name in titles()}
    for scenario in scenarios:
        for name in scenario.serves:
            found[name].append(f"scenario {scenario.name}")
    for invariant in discover():
        for name in invariant.serves:
            found[name].append(f"invariant {invariant.name}")
    for name, given in other_proofs().items():
        found[name] += given
    return {name: tuple(given) for name, given in found.items()}
