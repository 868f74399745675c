"""What a reader copies out of the reference queue's README is true: its commands parse, its metrics and groups are these."""

import re
import shlex
from pathlib import Path

import pytest

import reference_queue
from reference_queue.cli import _parser
from reference_queue.metrics import METRICS
from reference_queue.preflight import PARTS

README = (Path(reference_queue.__file__).parent / "README.md").read_text(encoding="utf-8")
FENCED = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
INLINE = re.findall(r"`(reference-queue \w[^`]*)`", README)
NAMES = {"reference-queue budget", "reference-queue preflight"}  # in a sentence, not a line to copy
COMMANDS = sorted(
    {line[line.index("reference-queue") :] for line in [*FENCED, *INLINE] if "reference-queue " in line} - NAMES
)


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one(command: str) -> None:
    _parser().parse_args(shlex.split(command)[1:])


def test_each_metric_is_there_with_what_to_do_about_it() -> None:
    for metric in METRICS:
        assert re.search(rf"^\| `{metric.name}`.*\| {re.escape(metric.advice)} \|$", README, re.MULTILINE), metric.name


def test_each_group_is_there() -> None:
    for part in PARTS:
        assert f"| `queue_{part}` |" in README
