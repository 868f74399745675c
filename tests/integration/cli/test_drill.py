"""Drills behind a pooler, as a user runs them: a queue goes on there, or its drill says what stood still and how to see it again."""

import shutil
from pathlib import Path

import pytest

from tests.integration.cli.conftest import CommandLine

SUBJECTS = Path(__file__).parents[3] / "harness" / "subjects"
DRILL = ("drill", "pooler_in_transaction_mode_for_all", "--seed", "7")

pytestmark = pytest.mark.skipif(
    shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") is None, reason="PgBouncer is not installed"
)


def test_pasted_sql_goes_on_behind_poolers(queueproof: CommandLine) -> None:
    said = queueproof(*DRILL, SUBJECTS / "sound" / "any_array_claim")
    assert said.code == 0, said
    assert "goes on meanwhile" in said.err
    assert "has exited with 1" not in said.err, "a worker of ours must not stumble over prepared statements"


def test_what_lives_by_listening_alone_does_not(queueproof: CommandLine) -> None:
    subject = SUBJECTS / "broken" / "notification_only_wakeup"
    said = queueproof(*DRILL, subject, "--budget", "3s", "--workers", "2")
    assert said.code == 1, said
    assert "does NOT go on meanwhile" in said.err
    assert "[backlog_recovers]" in said.out
    (line,) = [line for line in said.out.splitlines() if "reproduce:" in line]
    assert line.endswith(f"{subject} --seed 7 --hold 5s --budget 3s --workers 2")
