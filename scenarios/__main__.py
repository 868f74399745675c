"""Writes the catalogue of scenarios from their own words: ``python -m scenarios`` makes README.md anew."""

import inspect
from itertools import groupby
from pathlib import Path

from harness.contracts.scenario import HEADINGS, Scenario
from scenarios import discover

CATALOGUE = Path(__file__).with_name("README.md")
HEAD = """# Scenarios

One story per file, found automatically; this page is made from their own words by `python -m scenarios`.
`queueproof gate --only NAME` plays one, `queueproof explain NAME` tells it.

To add one, copy the file that is nearest to yours. Its name is a sentence that begins with where it strikes (`connection_`,
`job_`, `server_`, `worker_`); its docstring has the headings *What happens*, *Why it matters* and *What must hold*;
`must_happen` names the facts without which it proves nothing.
"""


def catalogue() -> str:
    """The page: a list by where the story strikes, then each story with what must have happened and what must hold."""
    scenarios = discover()
    parts = [HEAD]
    for place, names in groupby(scenarios, key=lambda name: name.partition("_")[0]):
        parts.append(f"\n## {place}\n\n")
        parts += [f"- [{name}](#{name}): {_first(scenarios[name])}\n" for name in names]
    parts += [_story(scenario) for scenario in scenarios.values()]
    return "".join(parts)


def _first(scenario: Scenario) -> str:
    return inspect.cleandoc(scenario.docstring).splitlines()[0]


def _story(scenario: Scenario) -> str:
    lines = [f"\n### {scenario.name}\n"]
    story = inspect.cleandoc(scenario.docstring).splitlines()
    lines += [f"**{line}.**" if line in HEADINGS else line.strip() for line in story]
    lines.append("\nMust have happened:\n")
    lines += [f"- {fact.sentence}" for fact in scenario.must_happen] or ["- nothing in particular"]
    lines.append("\nMust hold:\n")
    lines += [f"- `{invariant.name}`: {invariant.title}" for invariant in scenario.must_hold]
    lines.append(f"\nServes {', '.join(scenario.serves)}.\n")
    return "\n".join(lines)


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue(), encoding="utf-8")
