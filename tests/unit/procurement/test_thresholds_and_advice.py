"""Order thresholds, vendor questions and advice, from a run's numbers."""

import pytest

from harness.procurement.advice import Traffic, advice, questions
from harness.procurement.thresholds import Demand, Shown, thresholds

DEMAND = Demand(12.0, 300.0, 450.0, 8.0, 0.8)
TRAFFIC = Traffic(16, 2, connections=11, commits_per_second=55.0, wal_bytes_per_second=120_000.0)


def by_name(shown, demand=DEMAND):
    return {one.name: one for one in thresholds(demand, shown)}


def test_the_completion_rate_is_what_the_recovery_time_asks_for():
    found = by_name(Shown(completion_low_per_second=19.9))
    assert found["completion rate"].value == 20
    assert found["completion rate"].met is False
    assert by_name(Shown(completion_low_per_second=20.0))["completion rate"].met is True


def test_what_was_not_measured_is_stated_and_neither_met_nor_missed():
    found = by_name(Shown())
    assert {one.met for one in found.values()} == {None}
    assert set(found) == {
        "completion rate", "time until current again", "oldest runnable age", "claim latency, 95 %", "database CPU", "disk wait per commit, 95 %",
    }  # fmt: skip


def test_a_server_without_fsync_says_nothing_about_disks():
    assert by_name(Shown(flush_p95_ms=0.1, fsync=False))["disk wait per commit, 95 %"].met is None
    assert by_name(Shown(flush_p95_ms=11.0))["disk wait per commit, 95 %"].met is False


@pytest.mark.parametrize(
    "topic",
    [
        "self-managed PostgreSQL", "sustained CPU", "synchronous writes", "network from consumers to the database",
        "administrators' rights", "disks on stop and rebuild", "backup billing", "permission to inject faults",
        "who maintains reclaim and idempotency",
    ],
)  # fmt: skip
def test_every_question_is_asked(topic):
    assert topic in {one.topic for one in questions(DEMAND, Shown(), TRAFFIC)}


def test_questions_carry_the_runs_own_numbers():
    text = " ".join(one.text for one in questions(DEMAND, Shown(database_cores=0.4), TRAFFIC))
    for number in ("11 sessions", "55 commits/s", "0.40 cores", "120 kB/s", "12 jobs/s", "450 s"):
        assert number in text


def test_machines_are_advised_only_with_a_passing_gate_and_a_shown_bottleneck():
    def said(**how):
        return next(one.text for one in advice(Shown(), TRAFFIC, **how) if one.topic == "more machines")

    assert "no passing gate" in said(gate_passed=False, bottleneck="the disk")
    assert "no bottleneck" in said(gate_passed=True, bottleneck="")
    assert "the disk" in said(gate_passed=True, bottleneck="the disk")


def test_when_not_to_use_it_is_told_and_a_saturated_database_is_named():
    shown = Shown(database_cores=1.9, cores=2)
    by_topic = {one.topic: one.text for one in advice(shown, TRAFFIC, gate_passed=True, bottleneck="")}
    assert "It is saturated" in by_topic["a saturated database"]
    assert "do not use this design" in by_topic["strict global order"]
    assert "at-least-once" in by_topic["no tolerance for duplicates"]
