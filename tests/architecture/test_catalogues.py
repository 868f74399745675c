"""What is made of the tree's own words is current, and what the words name exists."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from harness.cli import app
from harness.contracts.scenario import HEADINGS
from harness.contracts.subject import State
from harness.invariants import discover as discover_invariants
from harness.run.subject_file import load_subject
from scenarios import discover as discover_scenarios
from scenarios.__main__ import CATALOGUE, catalogue

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "histories"
BROKEN = ROOT / "harness" / "subjects" / "broken"
INVARIANTS = [invariant.name for invariant in discover_invariants()]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_catalogue_of_scenarios_is_current() -> None:
    assert CATALOGUE.read_text(encoding="utf-8") == catalogue(), "run: python -m scenarios"


@pytest.mark.parametrize("name", discover_scenarios())
def test_a_scenario_tells_its_story_under_the_headings_in_their_order(name: str) -> None:
    scenario = discover_scenarios()[name]
    places = [scenario.docstring.find(f"\n    {heading}\n") for heading in HEADINGS]
    assert sorted(places) == places
    assert min(places) > 0
    assert scenario.must_hold
    assert scenario.serves


@pytest.mark.parametrize("name", INVARIANTS)
def test_an_invariant_names_a_broken_queue_that_it_must_catch(name: str) -> None:
    (invariant,) = [each for each in discover_invariants() if each.name == name]
    assert (BROKEN / invariant.broken_queue / "subject.toml").is_file()


@pytest.mark.parametrize("name", INVARIANTS)
def test_an_invariant_has_a_history_that_keeps_it_and_one_that_breaks_it(name: str) -> None:
    for kind in ("good", "bad"):
        assert (GOLDEN / f"{name}.{kind}.jsonl").is_file()


def _commands() -> list[str]:
    """Every command line of ours in the README: in its blocks, and in its sentences."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    lines = [line.partition("#")[0].strip() for line in blocks.splitlines()]
    lines += [" ".join(text.split()) for text in re.findall(r"`(queueproof[^`]+)`", README)]
    return [
        line.removeprefix(".venv/bin/") for line in lines if line.removeprefix(".venv/bin/").startswith("queueproof ")
    ]


@pytest.mark.parametrize("line", _commands())
def test_a_command_of_the_readme_is_understood(line: str) -> None:
    """Parsed by the command line itself, without being run."""
    words = shlex.split(line)[1:]
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    command = group.commands[words[0]]  # type: ignore[attr-defined]
    context = command.make_context(f"queueproof {words[0]}", words[1:])
    assert context.params


def test_the_readme_is_searched_for_commands_at_all() -> None:
    assert len(_commands()) >= 10


def test_a_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(
        re.findall(r"\bmake ([a-z-]+)", " ".join(re.findall(r"```sh\n.*?```|`make [a-z-]+`", README, re.DOTALL)))
    )
    assert named
    assert named <= targets


def test_a_file_that_the_readme_names_exists() -> None:
    named = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:harness|tests|reference_queue)/[^`*]*)`", README)
    assert named
    assert [name for name in named if not (ROOT / name.split()[0]).exists()] == []


def test_the_subject_of_the_readme_is_one_that_can_be_loaded(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "subject.toml").write_text(example, encoding="utf-8")
    for name in ("schema.sql", "worker.py"):
        (tmp_path / name).write_text("-- or any", encoding="utf-8")
    subject = load_subject(tmp_path)
    assert None not in (subject.lease_seconds, subject.heartbeat_seconds, subject.poll_seconds, subject.max_attempts)
    assert {"LEASE", "POLL"} <= set(subject.worker_env)
    (states,) = re.findall(r"must yield (.*)\n", example)
    assert set(re.findall(r"[a-z]+", states)) - {"or"} == set(State) - {State.DELETED}
