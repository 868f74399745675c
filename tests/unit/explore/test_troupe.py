"""When a worker with a job in hand still has something to say about it, and when it has let go of the job."""

from types import SimpleNamespace

import pytest

from harness.explore import troupe
from harness.explore.case import Case
from harness.explore.gate import Standing
from harness.explore.troupe import HOLDER_LOOKS, Actor, Troupe
from harness.history.events import Attempted, Entry

CLAIM, RESCUE, FINISH = "update task set worker = ?", "update task set worker = null", "update task set state = ?"


class Gate:
    def __init__(self):
        self.passed = 0

    def pass_on(self, session):
        self.passed += 1


@pytest.fixture
def holder():
    """A worker that was granted a job, and stands before its next look for ended leases."""
    actor = Actor(SimpleNamespace(number=1, sessions=[]), None, Gate())
    actor.holding.add("job-1")
    return actor


@pytest.fixture
def stage(holder):
    there = Troupe(Case(), None)
    there._actors, there._polls, there._main = [holder], {CLAIM, RESCUE}, CLAIM
    return there


def hear(stage, statement, change):
    attempt = Attempted(1, 1, 100, (change,), statement, 0)
    stage._heard(Entry(1, 0, "play", attempt))


def test_a_look_for_ended_leases_that_finds_none_is_no_refused_result(stage, holder):
    hear(stage, RESCUE, "release")
    assert holder.holding == {"job-1"}


def test_a_refused_result_ends_the_hold(stage, holder):
    hear(stage, FINISH, "complete")
    assert not holder.holding


def test_a_slow_machine_does_not_make_a_worker_forget_its_job(stage, holder, monkeypatch):
    standing = Standing(1, object(), SimpleNamespace(fingerprint=RESCUE))
    holder.let_go_at = 0.0
    monkeypatch.setattr(troupe, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    for _ in range(HOLDER_LOOKS):
        assert stage._has_more_to_say(holder, standing)
    assert holder.gate.passed == HOLDER_LOOKS
    assert not stage._has_more_to_say(holder, standing)
    assert not holder.holding
