"""Repeated calls: each excuse of the law allows one repeat, none allows two, and what is no excuse allows none."""

from collections.abc import Callable

import msgspec
import pytest

from harness.history.events import BackendEnded, FaultLanded, Moved, Reached, Row
from harness.history.made_up import SUBJECT, History
from harness.history.story import Story
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.failures_are_real import failures_are_real
from harness.invariants.no_double_execution import is_unexcused_duplicate, no_double_execution

Teller = Callable[[History], None]


def found(h: History) -> int:
    return len(list(no_double_execution.judge(Story.of(h.entries))))


def first_call(h: History, status: int | None = 200) -> None:
    h.start(1, 2, 3)
    h.enqueue("a")
    h.claim(1, "a")
    h.call(1, "a", status)


def death(h: History) -> None:
    first_call(h)
    h.kill(1)


def lease(h: History) -> None:
    first_call(h)
    h.wait(2500)


def non_2xx(h: History) -> None:
    first_call(h, 503)
    h.fail(1, "a")


def broken_reply(h: History) -> None:
    first_call(h, None)
    h.fail(1, "a")


def shutdown(h: History) -> None:
    first_call(h)
    h.signal(1, "SIGTERM")
    h.release(1, "a")


def server(h: History) -> None:
    first_call(h)
    h.say(FaultLanded("server stopped", "postmaster is gone"))


def operator(h: History) -> None:
    first_call(h)
    h.complete(1, "a")
    h.move(0, "a", "other", Row("pending", token="1"))


def lost_result(h: History) -> None:
    first_call(h)
    h.say(Reached("result_lost", 1, 1001, "a", "committed, reply withheld"))


def lost_backend(h: History) -> None:
    first_call(h)
    h.say(BackendEnded(1, 1001, "harness"))


def network(h: History) -> None:
    first_call(h)
    h.say(FaultLanded("network cut", "silent", 1))


EXCUSES: list[Teller] = [
    death, lease, non_2xx, broken_reply, shutdown, server, operator, lost_result, lost_backend, network,
]  # fmt: skip


@pytest.mark.parametrize("excuse", EXCUSES, ids=lambda tell: tell.__name__)
def test_each_excuse_allows_one_repeat(excuse: Teller) -> None:
    h = History()
    excuse(h)
    h.claim(2, "a")
    h.call(2, "a")
    assert found(h) == 0


@pytest.mark.parametrize("excuse", EXCUSES, ids=lambda tell: tell.__name__)
def test_no_excuse_allows_two_repeats(excuse: Teller) -> None:
    h = History()
    excuse(h)
    h.claim(2, "a")
    h.call(2, "a")
    h.claim(3, "a")
    h.call(3, "a")
    assert found(h) == 1


def nothing(h: History) -> None:
    first_call(h)


def release_without_shutdown(h: History) -> None:
    first_call(h)
    h.release(1, "a")


def failure_after_success(h: History) -> None:
    first_call(h)
    h.fail(1, "a")


def death_after_the_result(h: History) -> None:
    first_call(h)
    h.complete(1, "a")
    h.kill(1)


def death_of_a_stranger(h: History) -> None:
    first_call(h)
    h.kill(3)


def server_hurt_before(h: History) -> None:
    h.say(FaultLanded("server stopped", "postmaster is gone"))
    first_call(h)


def anothers_lost_reply(h: History) -> None:
    first_call(h)
    h.say(Reached("result_lost", 1, 1001, "b", "committed, reply withheld"))


@pytest.mark.parametrize(
    "no_excuse",
    [
        nothing, release_without_shutdown, failure_after_success, death_after_the_result, death_of_a_stranger,
        server_hurt_before, anothers_lost_reply,
    ],
    ids=lambda tell: tell.__name__,
)  # fmt: skip
def test_what_is_no_excuse(no_excuse: Teller) -> None:
    h = History()
    no_excuse(h)
    h.claim(2, "a")
    h.call(2, "a")
    assert found(h) == 1


def test_a_death_and_the_end_of_its_lease_are_one_loss() -> None:
    h = History()
    death(h)
    h.wait(2500)
    for worker in (2, 3):  # the second of these took it early
        h.claim(worker, "a")
        h.call(worker, "a")
    assert found(h) == 1


def test_the_late_call_of_a_paused_worker_is_excused_although_the_lease_ended_before_both_calls() -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a")
    h.call(1, "a")
    story = Story.of(h.entries)
    assert not list(no_double_execution.judge(story))
    assert not list(calls_follow_grants.judge(story))


def test_a_keyed_sink_does_not_hide_a_double_execution() -> None:
    h = History()
    first_call(h)
    h.claim(2, "a")
    h.call(2, "a")  # the sink knows the key: no second effect
    story = Story.of(h.entries)
    assert not list(effect_once.judge(story))
    assert list(no_double_execution.judge(story))


def test_under_at_least_once_an_excused_repeat_may_have_an_effect() -> None:
    h = History(subject=msgspec.structs.replace(SUBJECT, sink="naive"))
    death(h)
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a")
    assert not list(effect_once.judge(Story.of(h.entries)))
    h.call(2, "a")
    assert len(list(effect_once.judge(Story.of(h.entries)))) == 1


def test_the_alarm_during_a_play_waits_for_truth() -> None:
    h = History()
    first_call(h)
    h.wait(2500)
    h.claim(2, "a", read=False)
    h.call(2, "a")
    story = Story.of(h.entries)
    called = next(e for e in reversed(h.entries) if type(e.what).__name__ == "Called")
    assert is_unexcused_duplicate(story, called) is None  # the takeover's lease is not read yet
    h.show()
    story.add(h.entries[-1])
    assert is_unexcused_duplicate(story, h.entries[-1]) is None


def test_the_alarm_during_a_play_rings_as_soon_as_truth_is_known() -> None:
    h = History()
    first_call(h)
    h.claim(2, "a", read=False)
    h.call(2, "a")
    h.show()
    story, rang = Story("made-up"), []
    for entry in h.entries:
        story.add(entry)
        if is_unexcused_duplicate(story, entry) is not None:
            rang.append(entry)
    assert [type(entry.what) for entry in rang] == [Moved]


def test_the_rescue_of_ones_own_expired_job_is_its_leases_end_and_no_failure() -> None:
    for waited_ms, expected in ((2500, 0), (500, 1)):
        h = History()
        h.start(1)
        h.enqueue("a")
        h.claim(1, "a")
        h.call(1, "a")  # its completion was refused by the server, and not tried again
        h.wait(waited_ms)
        h.release(1, "a")
        h.run(1, "a")
        assert found(h) == expected
        assert len(list(failures_are_real.judge(Story.of(h.entries)))) == expected
