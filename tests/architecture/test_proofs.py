"""The catalogue of requirements tells the truth: what it names as a proof exists, and the protocol's every line has one."""

import argparse
import ast
from functools import cache
from pathlib import Path

import pytest
import typer

from harness.bench import discover as discover_benches
from harness.cli import app
from harness.run.requirements import other_proofs, proofs, titles
from reference_queue.cli import _parser
from scenarios import discover as discover_scenarios

ROOT = Path(__file__).parents[2]
NAMED = [(name, proof) for name, given in other_proofs().items() for proof in given]


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@cache
def commands() -> set[str]:
    (reference,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    ours = typer.main.get_command(app)
    return {f"reference-queue {word}" for word in reference.choices} | {f"queueproof {word}" for word in ours.commands}


@pytest.mark.parametrize(("requirement", "proof"), NAMED)
def test_what_is_named_as_a_proof_exists(requirement: str, proof: str) -> None:
    assert requirement in titles()
    kind, _, what = proof.partition(" ")
    if kind == "test":
        file, _, name = what.partition("::")
        assert name.startswith("test_")
        assert name in names_in(file)
    elif kind == "soak":
        assert (ROOT / what).is_file()
    elif kind == "bench":
        assert what in discover_benches()
    else:
        assert kind == "command"
        assert what in commands()


def test_no_proof_is_named_twice_for_one_requirement() -> None:
    for name, given in proofs(discover_scenarios().values()).items():
        assert len(given) == len(set(given)), name


@pytest.mark.parametrize("requirement", titles())
def test_every_requirement_has_a_proof(requirement: str) -> None:
    assert proofs(discover_scenarios().values())[requirement]
