"""Findings that a user has accepted, and names that nobody knows."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.contracts.problem import BadInput

SUCH_A_FILE = """such a file holds a table for each accepted finding:
[[known]]
scenario = "worker_late_complete_after_takeover"
invariant = "no_stale_write"
reason = "until the fence is deployed"
"""


def known_from(file: Path | None) -> dict[tuple[str, str], str]:
    """Accepted findings from a TOML file: ``[[known]]`` with scenario, invariant and reason."""
    if file is None:
        return {}
    try:
        return _read(file)
    except BadInput as wrong:
        raise BadInput(*wrong.mistakes, SUCH_A_FILE.rstrip()) from wrong


def _read(file: Path) -> dict[tuple[str, str], str]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--known {file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"--known {file}: not TOML: {error}") from error
    mistakes = [
        f"--known {file}: unknown key {key!r}; only [[known]] tables stand here" for key in tables if key != "known"
    ]
    entries = tables.get("known", [])
    if not isinstance(entries, list):
        mistakes.append(f"--known {file}: known is no list of tables; write [[known]]")
        entries = []
    wanted = {"scenario", "invariant", "reason"}
    accepted: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or set(entry) != wanted or not all(isinstance(v, str) for v in entry.values()):
            mistakes.append(f"--known {file}: entry {number} needs exactly scenario, invariant and reason, as text")
            continue
        accepted[entry["scenario"], entry["invariant"]] = entry["reason"]
        mistakes += [
            f"--known {file}: entry {number}: {stranger}"
            for stranger in _strangers(entry["scenario"], entry["invariant"])
        ]
    if mistakes:
        raise BadInput(*mistakes)
    return accepted


def known_of(subject: Any) -> dict[tuple[str, str], str]:
    """What the subject itself says is accepted."""
    accepted: dict[tuple[str, str], str] = {}
    mistakes: list[str] = []
    for name, reason in subject.known.items():
        scenario, _, invariant = name.partition(":")
        mistakes += [f"subject.known.{name!r}: {stranger}" for stranger in _strangers(scenario, invariant)]
        accepted[scenario, invariant] = reason
    if mistakes:
        raise BadInput(*mistakes)
    return accepted


def _strangers(scenario: str, invariant: str) -> list[str]:
    """What is wrong with the names of an accepted finding; one that names nothing would accept nothing, unseen."""
    from harness.invariants import discover as discover_invariants
    from scenarios import discover as discover_scenarios

    invariants = [each.name for each in discover_invariants()]
    return [
        f"no {what} is called {name!r}{near(name, names)}"
        for what, name, names in (("scenario", scenario, [*discover_scenarios()]), ("invariant", invariant, invariants))
        if name not in names
    ]


def near(name: str, names: Iterable[str], see: str = "queueproof list") -> str:
    import difflib

    near = difflib.get_close_matches(name, names, n=3)
    return f"; did you mean {', '.join(near)}?" if near else f"; see: {see}"
