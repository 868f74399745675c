"""The verdict: how findings, doubts, missing facts, troubles and crashes combine, and that nothing doubtful is ever green."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.contracts.fact import Fact
from harness.contracts.invariant import Invariant, Unknown, always
from harness.contracts.verdict import Finding, Verdict
from harness.history.events import LeftOut, Reached, TruthIncomplete
from harness.history.made_up import SUBJECT, History, write
from harness.history.story import Story
from harness.run.judge import Judged, judge, judge_history


def told(h: History) -> Judged:
    return judge(Story.of(h.entries))


def calm(**began: tuple[str, ...]) -> History:
    h = History(**began)  # type: ignore[arg-type]
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")
    return h


def broken(**began: tuple[str, ...]) -> History:
    h = calm(**began)
    h.claim(1, "a")  # a finished job is granted again
    h.complete(1, "a")
    return h


def of(*said: Finding | Unknown | Exception) -> Invariant[Story]:
    def saying(_: Story) -> Iterator[Finding | Unknown]:
        for each in said:
            if isinstance(each, Exception):
                raise each
            yield each

    return Invariant("made_up", "Made up", (), "", "Mend it.", saying, always)


FINDING = Finding("made_up", "because, however", (1,))


@pytest.mark.parametrize(
    ("said", "facts", "expected"),
    [
        ([], [], Verdict.PASS),
        ([FINDING], [], Verdict.FAIL),
        ([Unknown("dark")], [], Verdict.INCONCLUSIVE),
        ([Unknown("dark"), FINDING], [], Verdict.FAIL),
        ([], [()], Verdict.INCONCLUSIVE),
        ([], [(1,)], Verdict.PASS),
        ([FINDING], [()], Verdict.FAIL),  # a fail stands even where the fault did not land
        ([RuntimeError("oh")], [], Verdict.INCONCLUSIVE),  # a judge that falls over never passes anything
        ([FINDING, RuntimeError("oh")], [], Verdict.FAIL),
    ],
)
def test_how_it_combines(
    said: list[Finding | Unknown | Exception], facts: list[tuple[int, ...]], expected: Verdict
) -> None:
    h = calm()
    h.end()
    wanted = [Fact("it happened", lambda _, evidence=evidence: evidence) for evidence in facts]
    judged = judge(Story.of(h.entries), [of(*said)], wanted)
    assert judged.verdict is expected
    assert judged.reason


def test_a_fallen_invariant_is_named() -> None:
    h = calm()
    h.end()
    judged = judge(Story.of(h.entries), [of(RuntimeError("oh"))])
    assert "made_up" in judged.reason
    assert "RuntimeError: oh" in judged.reason


def test_a_fallen_fact_is_named_and_did_not_happen() -> None:
    def falls(_: Story) -> tuple[int, ...]:
        raise KeyError("x")

    h = calm()
    h.end()
    judged = judge(Story.of(h.entries), [], [Fact("it fell", falls)])
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.missing == ("it fell",)
    assert "it fell" in judged.reason


def test_incomplete_truth_is_never_the_subjects_fault() -> None:
    h = broken()
    h.say(TruthIncomplete("TRUNCATE"))
    h.end()
    judged = told(h)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.reason == "truth incomplete: TRUNCATE"


@pytest.mark.parametrize("whose", ["harness", "subject", ""])
def test_a_play_that_could_not_be_gone_through_with_is_not_green(whose: str) -> None:
    h = calm()
    h.end("no disk", whose)
    judged = told(h)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "no disk" in judged.reason


def test_a_fail_stands_beside_a_trouble() -> None:
    h = broken()
    h.end("the scenario did not end", "")
    assert told(h).verdict is Verdict.FAIL


def test_a_recording_that_stops_is_inconclusive() -> None:
    assert told(calm()).verdict is Verdict.INCONCLUSIVE


def test_facts_come_from_the_plays_own_beginning() -> None:
    h = calm(must_happen=("taken over", "a worker stood at called"))
    h.say(Reached("called", 1, 0, "a", "the sink holds it"))
    h.end()
    judged = told(h)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.missing == ("taken over",)
    assert [fact.happened for fact in judged.facts] == [False, True]


@pytest.mark.parametrize("began", [{"must_happen": ("the moon rose",)}, {"must_hold": ("no_eclipse",)}])
def test_what_this_version_does_not_know_is_inconclusive_by_name(began: dict[str, tuple[str, ...]]) -> None:
    h = calm(**began)
    h.end()
    judged = told(h)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert next(iter(began.values()))[0] in judged.reason


def test_an_excused_invariant_does_not_judge() -> None:
    excused = ("finished_stays_finished", "no_double_execution", "calls_follow_grants")
    h = broken(excuses=excused)
    h.end()
    judged = told(h)
    by_name = {each.invariant.name: each.verdict for each in judged.judgements}
    assert judged.verdict is Verdict.PASS
    assert all(by_name[name] is Verdict.NOT_APPLICABLE for name in excused)


def test_what_only_a_part_could_break_that_was_left_out_has_not_held() -> None:
    h = calm(must_hold=("no_stale_write", "one_owner"))
    h.say(LeftOut("the end of a lease", "nothing can end it", ("no_stale_write",)))
    h.end()
    judged = told(h)
    by_name = {each.invariant.name: each for each in judged.judgements}
    said = "the end of a lease was left out, because nothing can end it"
    assert by_name["no_stale_write"].verdict is Verdict.NOT_APPLICABLE
    assert by_name["no_stale_write"].reason == said
    assert by_name["one_owner"].verdict is Verdict.PASS
    assert judged.verdict is Verdict.PASS
    assert said in judged.reason
    assert judged.left_out == (said,)


def test_what_was_broken_although_a_part_was_left_out_is_broken() -> None:
    h = broken()
    h.say(LeftOut("the end of a lease", "nothing can end it", ("finished_stays_finished",)))
    h.end()
    judged = told(h)
    assert judged.verdict is Verdict.FAIL
    assert "finished_stays_finished" in {finding.invariant for finding in judged.findings}


def test_a_story_about_what_the_subject_lacks_is_not_applicable() -> None:
    h = History(subject=msgspec.structs.replace(SUBJECT, has_token=False), must_hold=("token_fences",))
    h.enqueue("a")
    h.start(1)
    h.run(1, "a")
    h.end()
    judged = told(h)
    assert judged.verdict is Verdict.NOT_APPLICABLE
    assert judged.reason == "the subject has no token; if it has one, declare subject.jobs.token to have this judged"


def test_a_pass_says_how_much_applied() -> None:
    h = calm()
    h.end()
    assert told(h).reason.startswith("held (")


def test_a_stored_history_has_the_same_verdicts(tmp_path: Path) -> None:
    good, bad = calm(), broken()
    good.play, bad.play = "good", "bad"
    entries = [msgspec.structs.replace(e, play="good") for e in good.end()]
    entries += [msgspec.structs.replace(e, play="bad") for e in bad.end()]
    entries = [msgspec.structs.replace(e, n=n) for n, e in enumerate(entries, start=1)]
    write(tmp_path / "history.jsonl", entries)
    judged = judge_history(tmp_path / "history.jsonl")
    assert {play: each.verdict for play, each in judged.items()} == {"good": Verdict.PASS, "bad": Verdict.FAIL}
    assert judged == judge_history(tmp_path / "history.jsonl")


def test_a_cut_off_history_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, calm().end())
    path.write_bytes(path.read_bytes()[:-5])
    told: list[str] = []
    (judged,) = judge_history(path, truncated=told.append).values()
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert told
