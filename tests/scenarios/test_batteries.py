"""The broken queues are declared so that detection can be proven, and (slowly) are detected; the sound ones raise no alarm."""

from pathlib import Path

import pytest

from harness.bench import battery
from harness.bench.battery import SUBJECTS, Round, Tried
from harness.contracts.subject import Broken
from harness.invariants import discover as discover_invariants
from harness.run.subject_file import load_subject
from scenarios import discover as discover_scenarios

BROKEN = sorted(folder for folder in (SUBJECTS / "broken").iterdir() if folder.is_dir())
SOUND = sorted(folder for folder in (SUBJECTS / "sound").iterdir() if folder.is_dir())
INVARIANTS = {invariant.name: invariant for invariant in discover_invariants()}


def named(folder: Path) -> str:
    return folder.name


@pytest.mark.parametrize("folder", BROKEN, ids=named)
def test_a_broken_queue_says_what_is_broken_and_who_must_catch_it(folder: Path) -> None:
    subject = load_subject(folder)
    broken = subject.broken
    assert broken is not None
    assert subject.name == folder.name.replace("_", "-")
    assert broken.caught_by in INVARIANTS
    assert set(broken.by) <= set(discover_scenarios())
    comment = [line for line in (folder / "subject.toml").read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    assert any(line.startswith(f"# Class {broken.letter} (") for line in comment)
    assert len(comment) > 1, "the first lines say what is broken"


@pytest.mark.parametrize("invariant", INVARIANTS.values(), ids=lambda each: each.name)
def test_every_invariant_has_a_broken_queue_that_it_must_catch(invariant) -> None:
    broken = load_subject(SUBJECTS / "broken" / invariant.broken_queue).broken
    assert broken is not None
    assert broken.caught_by == invariant.name


def test_the_battery_covers_the_catalogue() -> None:
    assert len(BROKEN) >= 40
    assert {load_subject(folder).broken.letter for folder in BROKEN} == set("ABCDEFGHIJKLMNOPQR")


@pytest.mark.parametrize("folder", SOUND, ids=named)
def test_a_sound_queue_is_declared_as_such(folder: Path) -> None:
    subject = load_subject(folder)
    assert subject.broken is None
    assert subject.name == folder.name.replace("_", "-")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("folder", BROKEN, ids=named)
def test_a_broken_queue_is_caught_by_the_invariant_named_for_it(folder: Path) -> None:
    result = battery.run([folder.name])
    assert result["could_not_run"] == {}
    assert result["each"][folder.name]["outcomes"] == ["named"], result["each"][folder.name]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", SOUND, ids=named)
def test_a_sound_queue_raises_no_alarm(folder: Path) -> None:
    assert battery.run_sound([folder.name])["false_alarms"] == {}


# What a battery makes of what was played.

WRONG = Broken("C", "no_stale_write", ("late", "paused"))


@pytest.mark.parametrize(
    ("verdict", "found", "expected"),
    [
        ("fail", ("consistent", "no_stale_write"), "named"),
        ("fail", ("consistent",), "other"),
        ("pass", (), "missed"),
        ("inconclusive", (), "unclear"),
        ("not applicable", (), "unclear"),
    ],
)
def test_how_a_round_came_out(verdict: str, found: tuple[str, ...], expected: str) -> None:
    assert Round("late", 1, verdict, "", found).outcome(WRONG) == expected


def test_each_repetition_counts_for_itself_and_takes_the_best_of_its_scenarios() -> None:
    rounds = (
        Round("late", 1, "pass", "", ()),
        Round("paused", 1, "fail", "", ("no_stale_write",)),
        Round("late", 2, "fail", "", ("consistent",)),
        Round("paused", 2, "inconclusive", "", ()),
        Round("late", 3, "pass", "", ()),
        Round("paused", 3, "pass", "", ()),
        Round("elsewhere", 3, "fail", "", ("no_stale_write",)),  # not one that must catch it
    )
    assert tuple(battery._outcomes(rounds, WRONG, 3)) == ("named", "other", "missed")


def test_a_queue_that_slips_through_once_is_not_caught_and_says_how_to_play_it_again() -> None:
    slipped = Tried("slipped", WRONG, (), 1.0, outcomes=("named", "missed"))
    caught = Tried("caught", WRONG, (), 1.0, outcomes=("named", "other"))
    told = battery._told([slipped, caught], 2.0, matrix=False)
    assert told["caught"] == 1
    assert told["by_the_named_invariant"] == 0.5
    assert list(told["missed"]) == ["slipped"]
    assert "--only late --only paused" in told["missed"]["slipped"]


def test_a_name_that_is_no_queue_is_refused() -> None:
    with pytest.raises(battery.BadInput, match="'nobody'"):
        battery.run(["nobody"])
