"""Folding: what is told entry by entry is arranged by job, worker and session, also while it is still being told."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.events import Attempted, Entry, Moved, Row, Signalled
from harness.history.made_up import History
from harness.history.story import Story, stories


def test_a_history_is_split_by_play_in_the_order_they_began() -> None:
    one, two = History("one"), History("two")
    one.enqueue("a")
    two.enqueue("b")
    mixed = [entry for pair in zip(one.end(), two.end(), strict=True) for entry in pair]
    told = stories(mixed)
    assert list(told) == ["one", "two"]
    assert list(told["one"].jobs) == ["a"]
    assert list(told["two"].jobs) == ["b"]


def test_a_grant_knows_its_notice_its_end_and_its_process() -> None:
    h = History()
    h.start(1)
    h.kill(1)
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    (grant,) = Story.of(h.end()).jobs["a"].grants
    assert grant.incarnation == 2
    assert grant.notice is not None
    assert grant.notice.n < grant.known_by < grant.n


def test_a_grant_without_wire_evidence_is_known_only_when_it_was_read() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", wire=False)
    (grant,) = Story.of(h.end()).jobs["a"].grants
    assert grant.notice is None
    assert grant.began == grant.known_by == grant.n
    assert grant.incarnation == 1  # by its backend's pid


def test_transitions_stand_in_the_order_of_truth_not_of_reading() -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a", read=False)
    first = h._unread
    h.rows["a"] = first.new
    h.wait(2500)
    h.claim(2, "a")
    h.show(first)
    job = Story.of(h.entries).jobs["a"]
    assert [t.worker for t in job.transitions] == [0, 1, 2]


def test_an_attempt_that_names_the_row_is_tied_to_its_key() -> None:
    h = History()
    h.start(1)
    h.say(Attempted(101, 1, 1001, ("complete",), "s", 0, jobs=("id-a",)))  # before truth has shown whose id it is
    h.enqueue("a")
    (attempt,) = Story.of(h.entries).jobs["a"].attempts
    assert not attempt.moved


def test_an_attempt_on_two_jobs_may_move_only_one() -> None:
    h = History()
    h.start(1)
    h.enqueue("a", "b")
    h.claim(1, "a")
    h.claim(1, "b")
    h.move(1, "a", "complete", Row("done"), settles=False)
    h.say(Attempted(h.session(1), 1, h.pid(1), ("complete",), "complete", 1, keys=("a", "b")))
    jobs = Story.of(h.entries).jobs
    assert [jobs[key].attempts[-1].moved for key in "ab"] == [True, False]


def test_rows_that_are_not_ours_are_kept_apart() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.say(Moved(99, 9, 1, 1, "claim", "77", "vacuum-job", None, Row("running"), 1, 1, 1, ours=False))
    story = Story.of(h.end())
    assert list(story.jobs) == ["a"]
    assert [stranger.moved.key for stranger in story.strangers] == ["vacuum-job"]


def test_a_call_belongs_to_the_latest_grant_that_was_surely_committed() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.claim(1, "a", settles=False, read=False)  # the same process claims again, and has not been answered
    h.call(1, "a")
    h.settle(1)
    h.show()
    h.call(1, "a")
    assert [call.grant for call in Story.of(h.entries).jobs["a"].calls] == [0, 1]


def test_closing_a_play_is_no_death_within_the_story() -> None:
    h = History()
    h.start(1, 2, 3)
    h.kill(1)
    h.say(msgspec.structs.replace(h.entries[-1].what, worker=2, pid=1002))  # killed without a recorded signal
    h.say(msgspec.structs.replace(h.entries[-1].what, worker=3, pid=1003, code=1))
    story = Story.of(h.entries)
    fell = {number: worker.incarnations[0].fell is not None for number, worker in story.workers.items()}
    assert fell == {1: True, 2: False, 3: True}


def test_a_worker_is_alive_until_it_is_killed() -> None:
    h = History()
    h.start(1)
    before = len(h.entries)
    killed = h.say(Signalled(1, "SIGKILL"))
    worker = Story.of(h.entries).worker(1)
    assert worker.alive_at(before)
    assert not worker.alive_at(killed)
    assert Story().worker(5).alive_at(1)  # nothing is known of it


@given(st.data())
def test_a_story_may_be_questioned_at_any_time(data: st.DataObject) -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.claim(2, "a")
    h.call(1, "a")
    h.call(2, "a")
    h.complete(2, "a")
    entries = h.end()
    asked = data.draw(st.sets(st.integers(0, len(entries) - 1)))
    story = Story("made-up")
    for number, entry in enumerate(entries):
        story.add(entry)
        if number in asked:
            _ = story.jobs
    whole, piecemeal = Story.of(entries, "made-up").jobs["a"], story.jobs["a"]
    assert [t.known_by for t in piecemeal.transitions] == [t.known_by for t in whole.transitions]
    assert [c.grant for c in piecemeal.calls] == [c.grant for c in whole.calls]
    assert piecemeal.places == whole.places


@pytest.mark.parametrize("n", [0, 3, 99])
def test_entries_are_found_by_number(n: int) -> None:
    entries = [Entry(i, i * 10, "p", Signalled(1, "SIGCONT")) for i in (1, 3, 7)]
    found = Story.of(entries).entry(n)
    assert (found is not None) == (n == 3)
