"""Modules in place of the console script, and a standard output that is closed: never the code of a verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import COMMAND

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["harness", "harness.entry", "harness.cli"])
def test_a_module_that_is_run_does_what_the_command_does(tmp_path: Path, module: str) -> None:
    words = [sys.executable, "-m", module, "gate", "--only", "zzzz"]
    said = subprocess.run(
        words, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True
    )
    assert said.returncode == 2
    assert b"zzzz" in said.stderr


@pytest.mark.parametrize("words", [("bench",), ("list", "--json"), ("gate", "--help")])
def test_who_reads_the_result_may_go_and_no_queue_is_called_broken(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    said = subprocess.run([COMMAND, *words], check=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (said.returncode, said.stderr) == (3, b"")


def test_a_result_that_nobody_wants_is_no_trouble() -> None:
    said = subprocess.run(["sh", "-c", f"'{COMMAND}' list >&-"], check=False, stderr=subprocess.PIPE)
    assert (said.returncode, said.stderr) == (0, b"")
