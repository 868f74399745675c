"""The trace: backlog and ages from calls as they come, and what a killed worker's call counts for."""

import numpy as np
import pytest

from harness.history.events import Answered, Applied, Called
from harness.load.trace import Trace


class Clock(Trace):
    """A trace whose clock is set by hand."""

    at = 0.0

    def now(self):
        return self.at


@pytest.fixture
def trace():
    return Clock("load-1-", np.array([0.0, 1.0, 2.0, 9.0]), 0.0)


def call(trace, number, job, at):
    trace.at = at
    trace.record(Called(number, 1, trace.key(job)))


def answer(trace, number, job, at, status=200):
    trace.at = at
    if status == 200:
        trace.record(Applied(number, 1, trace.key(job), "effect"))
    trace.record(Answered(number, 1, trace.key(job), status))


def test_backlog_counts_what_is_due_and_not_started(trace):
    call(trace, 1, 0, 2.5)
    look = trace.look(2.5)
    assert (look.due, look.unstarted, look.in_service, look.done) == (3, 2, 1, 0)
    assert look.oldest_unstarted_age == 1.5
    assert look.oldest_unfinished_age == 2.5


def test_a_call_that_died_with_its_worker_is_unstarted_again(trace):
    call(trace, 1, 0, 0.1)
    answer(trace, 1, 0, 0.5, status=None)
    assert trace.look(0.6).unstarted == 1
    call(trace, 2, 0, 3.0)
    answer(trace, 2, 0, 3.1)
    assert trace.first_starts()[0] == 3.0
    assert [attempt.answered for attempt in trace.attempts] == [False, True]


def test_a_failed_attempt_is_unfinished_and_not_unstarted(trace):
    call(trace, 1, 0, 0.1)
    answer(trace, 1, 0, 0.5, status=503)
    look = trace.look(0.9)
    assert (look.unstarted, look.unfinished, look.oldest_unfinished) == (0, 1, 0)


def test_a_late_answer_takes_nothing_back(trace):
    call(trace, 1, 0, 0.1)
    call(trace, 2, 0, 0.2)
    answer(trace, 2, 0, 0.3)
    answer(trace, 1, 0, 0.4, status=None)
    assert trace.look(0.5).done == 1


@pytest.mark.parametrize("key", ["load-1-", "load-1-x", "other-00000001", "load-1-00000004"])
def test_strangers_are_counted_and_left_alone(trace, key):
    trace.record(Called(1, 1, key))
    assert trace.strangers == 1
    assert trace.look(0.5).in_service == 0


def test_a_job_that_was_given_up_is_no_backlog_and_not_done(trace):
    """Its worker never reached the sink with it, and the table calls it dead: waiting for it would be for ever."""
    trace.at = 3.0
    trace.give_up([trace.key(0), trace.key(1), "other-1"])
    look = trace.look(3.0)
    assert (look.unstarted, look.unfinished, look.done) == (1, 1, 0)
    assert look.oldest_unfinished == 2
    assert trace.given_up == {0: 3.0, 1: 3.0}
    call(trace, 1, 0, 4.0)
    answer(trace, 1, 0, 4.1)
    assert trace.look(4.2).done == 1, "somebody took it up again"


def test_a_job_that_succeeded_cannot_be_given_up(trace):
    call(trace, 1, 0, 0.1)
    answer(trace, 1, 0, 0.2)
    trace.give_up([trace.key(0)])
    assert trace.given_up == {}
    assert trace.look(0.5).done == 1


def test_calls_for_greetings_show_who_is_there_and_are_no_strangers(trace):
    trace.greeting = "join-1-"
    trace.record(Called(1, 2, "join-1-0"))
    trace.record(Called(2, 2, "join-1-1"))
    assert (trace.greeted, trace.strangers) == ({2: 2}, 0)
