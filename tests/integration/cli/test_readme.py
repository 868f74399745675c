"""What a reader of the README types first is run, as it stands there."""

import json

import pytest

from harness.run.subject_file import reference_queue_folder
from tests.integration.cli.conftest import CommandLine


@pytest.mark.parametrize(
    "words", [["list"], ["list", "--requirements"], ["explain", "workers_ten_claim_at_one_barrier"]]
)
def test_what_is_there_is_shown(queueproof: CommandLine, words: list[str]) -> None:
    said = queueproof(*words)
    assert said.code == 0
    assert said.out
    assert said.err == ""


@pytest.mark.parametrize("kind", ["sql", "python", "shell"])
def test_a_starter_can_be_probed_at_once(queueproof: CommandLine, dsn: str, kind: str) -> None:
    assert queueproof("init", "my-queue", "--kind", kind).code == 0
    said = queueproof("probe", "my-queue", "--json", "--server", dsn)
    assert said.code == 0, said
    assert {"enqueue", "claim", "complete"} & set(json.loads(said.out)["changes"]) >= {"claim", "complete"}


def test_a_broken_queue_tells_its_story(queueproof: CommandLine) -> None:
    broken = "harness/subjects/broken/complete_by_id_only"

    said = queueproof("gate", reference_queue_folder().parent / broken, "--only", "late_complete")
    assert said.code == 1
    assert "no_stale_write" in said.out
    assert "because" in said.out
    assert "reproduce: queueproof gate" in said.out
    assert "did not happen" not in said.out
