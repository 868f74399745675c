"""Other people's queues, in other languages, driven unchanged: each judged right, with what does not apply and why."""

import shutil
from pathlib import Path

import pytest

from harness.document import Document
from tests.fixtures.gates import Gate

PEERS = Path(__file__).parents[2] / "harness" / "subjects" / "peers"
STORIES = [
    "workers_ten_claim_at_one_barrier",
    "worker_late_complete_after_takeover",
    "worker_late_failure_after_takeover",
    "worker_late_renewal_after_takeover",
    "worker_killed_after_call_before_confirmation",
    "job_fails_by_its_content",
    "job_kills_its_worker_every_time",
]
UNFENCED = {"worker_late_complete_after_takeover", "worker_late_failure_after_takeover"}


def failed(document: Document) -> dict[str, set[str]]:
    return {play.scenario: {f.invariant for f in play.findings} for play in document.plays if play.verdict == "fail"}


def not_applicable(document: Document) -> dict[str, str]:
    return {play.scenario: play.reason for play in document.plays if play.verdict == "not applicable"}


def inconclusive(document: Document) -> dict[str, str]:
    return {play.scenario: play.reason for play in document.plays if play.verdict == "inconclusive"}


def undecidable_of_pgmq(reason: str) -> bool:
    """Whether it is about a lease that ended while the taking transaction ran.

    pgmq, and no other peer, compares leases with the clock inside its statement, which no clock of a transition brackets
    closely enough: DESIGN's rule then asks for "unknown".
    """
    return reason.startswith("one_owner: whether")


@pytest.mark.parametrize("peer", ["shell", "pgmq"])
def test_a_queue_without_a_fence_fails_by_the_late_writes_and_by_nothing_else(gate: Gate, peer: str) -> None:
    document = gate(PEERS / peer, STORIES)
    assert failed(document) == {story: {"no_stale_write"} for story in UNFENCED}
    unclear = inconclusive(document)
    if peer == "pgmq":
        unclear = {story: reason for story, reason in unclear.items() if not undecidable_of_pgmq(reason)}
    assert unclear == {}
    assert set(not_applicable(document)) == {"worker_late_renewal_after_takeover", "job_kills_its_worker_every_time"}
    assert "renewal" in not_applicable(document)["worker_late_renewal_after_takeover"]
    assert "max_attempts" in not_applicable(document)["job_kills_its_worker_every_time"]
    assert document.verdict == "fail"


def test_the_same_shell_script_with_a_fence_holds(gate: Gate) -> None:
    document = gate(PEERS / "shell_fenced", STORIES)
    assert failed(document) == {}
    assert inconclusive(document) == {}
    assert document.summary == "held (5 of 7 apply)"


def test_pasted_sql_holds_where_all_of_it_applies(gate: Gate) -> None:
    document = gate(PEERS / "pasted", STORIES)
    assert failed(document) == {}
    assert inconclusive(document) == {}
    assert document.summary == "held (7 of 7 apply)"


@pytest.mark.skipif(shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") is None, reason="PgBouncer is not installed")
def test_the_reference_queue_holds_wholly_behind_a_pooler(gate: Gate) -> None:
    """In transaction mode, where nobody has a session: stopped at the same points, on the pooler's connections."""
    document = gate(PEERS / "behind_pgbouncer", STORIES)
    assert failed(document) == {}
    assert inconclusive(document) == {}
    assert document.summary == "held (7 of 7 apply)"
