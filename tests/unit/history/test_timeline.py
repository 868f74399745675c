"""Telling: every kind of event has a short sentence, and the few that are picked hold the proof."""

import typing

import msgspec
import pytest

from harness.contracts.verdict import Finding
from harness.history.events import AnyEvent, Attempted, Entry, Moved, Row, Signalled
from harness.history.made_up import History
from harness.history.story import Story
from harness.history.timeline import MOST_MOMENTS, kind_of, moments, tell, witness

KINDS = typing.get_args(AnyEvent)


def any_value(kind: object) -> object:
    """Some value of a field's type, so that every event can be made without naming its fields."""
    if kind is str:
        return "x"
    if kind is int:
        return 1
    if kind is float:
        return 1.5
    if kind is bool:
        return True
    if typing.get_origin(kind) is tuple:
        return ("x",)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind(**{f.name: any_value(f.type) for f in msgspec.structs.fields(kind) if f.required})
    return next((any_value(each) for each in typing.get_args(kind) if each is not type(None)), None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_is_told_and_witnessed(kind: type[msgspec.Struct]) -> None:
    event = kind(**{f.name: any_value(f.type) for f in msgspec.structs.fields(kind)})
    entry = Entry(1, 5_000_000, "p", event)  # type: ignore[arg-type]
    who, text = tell(entry)
    assert who.split()[0] in {"worker", "database", "sink", "harness"}
    assert text
    assert "\n" not in text
    assert witness(Story.of([entry]), entry).n == 1


def test_long_and_wild_texts_stay_on_one_short_line() -> None:
    h = History()
    h.reach(1, "claimed", "a", proof="x\ny " * 400)
    assert len(tell(h.entries[-1])[1]) < 250


def test_kinds_for_drawing() -> None:
    row = Row("running")
    assert kind_of(Moved(1, 1, 1, 1, "claim", "1", "a", None, row, 1, 1, 1)) == "claim"
    assert kind_of(Attempted(1, 1, 1, ("complete", "fail"), "s", 0)) == "refused complete"
    assert kind_of(Attempted(1, 1, 1, ("complete",), "s", 1)) == "attempted"
    assert kind_of(Signalled(1, "SIGSTOP")) == "SIGSTOP"


def test_what_a_lease_has_left_is_told_by_the_databases_clock() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    shown = witness(Story.of(h.entries), h.entries[-1])
    assert (shown.kind, shown.state, shown.token, shown.lease_left_ms) == ("claim", "running", "1", 2000.0)


def test_the_proof_is_always_among_the_moments_however_long_the_play() -> None:
    h = History()
    h.start(1)
    keys = [f"job {n}" for n in range(100)]
    h.enqueue(*keys)
    h.run(1, *keys)
    h.end()
    proof = (len(h.entries) // 2, len(h.entries) - 20)
    shown = moments(Story.of(h.entries), [Finding("x", "s", proof, "job 50", (1,))])
    assert len(shown) <= MOST_MOMENTS
    assert set(proof) <= {each.n for each in shown}
    assert [each.n for each in shown] == sorted(each.n for each in shown)
    assert {each.key for each in shown if each.kind == "claim" and each.n not in proof} == {"job 50"}


def test_an_empty_story_has_no_moments() -> None:
    assert moments(Story()) == []


def test_a_transition_that_was_read_late_stands_where_the_wire_saw_it_end() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", read=False)
    h.wait(30)
    h.call(1, "a")
    h.wait(30)
    h.show()
    told = [each.kind for each in moments(Story.of(h.entries)) if each.kind in {"claim", "called"}]
    assert told == ["claim", "called"]
