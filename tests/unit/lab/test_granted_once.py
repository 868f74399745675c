"""A result counts as accepted before a takeover only while the job had no second grant."""

from types import SimpleNamespace
from typing import Any, cast

from harness.history.made_up import History
from scenarios.worker_completes_while_a_rescuer_looks import granted_once


def lab_of(history: History) -> Any:
    return cast("Any", SimpleNamespace(recorder=SimpleNamespace(entries=history.entries)))


def test_the_result_of_its_only_holder() -> None:
    history = History()
    history.start(1, 2)
    history.enqueue("a", "b")
    history.claim(1, "a")
    history.claim(2, "b")
    history.complete(1, "a")
    assert granted_once(lab_of(history), "a")


def test_not_the_result_of_one_who_was_granted_it_again_after_a_rescue() -> None:
    history = History()
    history.start(1, 2)
    history.enqueue("a")
    history.claim(1, "a")
    history.release(2, "a")
    history.claim(1, "a")
    history.complete(1, "a")
    assert not granted_once(lab_of(history), "a")
