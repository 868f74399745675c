"""The terminal's face: lines, stories, the reproduce line, and the verdict last."""

import msgspec
import pytest

from harness.document import Document
from reports import as_text


def lines_of(document: Document, **how: object) -> list[str]:
    return as_text.render(document, **how).decode().splitlines()


def test_a_line_per_scenario_with_sign_word_seconds_and_reason(broken: Document):
    shown = lines_of(broken)
    assert shown[2] == (
        "✓ pass            two sessions lock skip roll back               0.8 s  13 invariants held, 3 of 3 facts happened"
    )
    assert [line.split()[0] for line in shown[2:7]] == ["✓", "✗", "✓", "?", "–"]


def test_the_verdict_is_the_last_line(sample: Document):
    assert lines_of(sample)[-1].endswith(sample.summary)


def test_a_failure_is_a_story_that_ends_with_the_line_to_reproduce_it(broken: Document):
    shown = lines_of(broken)
    start = shown.index("✗ worker paused past its lease completes late")
    story = shown[start : shown.index("", start)]
    assert [line.split("  ")[2].strip() for line in story if " ms  worker" in line]
    told = "\n".join(story)
    assert "12.0 ms  worker 1  claims order" in told
    assert "because worker 2 had been granted the job" in told
    assert "however the database accepted it" in told
    assert "     usually mended by: Let every write name its grant (`where id = $1 and token = $2`)." in story
    assert story[-1].startswith("  reproduce: queueproof gate ")
    assert story[-1].endswith("--seed 42")


def test_what_did_not_happen_explains_an_inconclusive(inconclusive: Document):
    assert "  did not happen: the job was taken over" in lines_of(inconclusive)


def test_all_that_could_not_be_judged_is_told(inconclusive: Document):
    assert "  not judged: no_lost_job: job 'a' was given only 2 s" in lines_of(inconclusive)
    assert not any("one_owner" in line for line in lines_of(inconclusive))


def test_a_long_key_is_shortened_and_says_so(broken: Document):
    shown = lines_of(broken)
    assert max(map(len, shown)) < 400
    assert any("characters)…kkk" in line for line in shown)


def test_plain_unless_colour_is_asked_for(broken: Document):
    assert not any("\x1b" in line for line in lines_of(broken))
    coloured = lines_of(broken, colour=True)
    assert coloured[3].startswith("\x1b[1;31m✗ fail\x1b[0m ")
    assert coloured[-1].startswith("\x1b[1;31m✗ broken")


@pytest.mark.parametrize("width", [1, 60, 80, 140])
def test_fits_the_width_but_never_breaks_the_line_to_copy(broken: Document, width: int):
    for line in lines_of(broken, width=width)[:-1]:
        if "reproduce:" not in line and not line.startswith(("✓", "✗", "?", "–")):
            assert len(line) <= max(width, 70)


def test_a_live_line_is_one_line(broken: Document):
    play = msgspec.structs.replace(broken.plays[1], reason="first\nsecond " + "long " * 200)
    assert "\n" not in as_text.line(play)
    cut = as_text.line(play, width=100)
    assert len(cut) == 100
    assert cut.endswith("…")


def test_lines_that_were_told_as_the_plays_ended_are_not_told_again(broken: Document):
    again = as_text.render(broken).decode()
    once = as_text.render(broken, told=True).decode()
    for play in broken.plays:
        assert as_text.line(play).split("  ")[0] in again
    stories = again[again.index("\n\n", again.index("\n\n") + 1) :]  # after the heading and the lines
    assert once == again[: again.index("\n")] + "\n" + stories[1:]


def test_repetitions_are_numbered(broken: Document):
    play = msgspec.structs.replace(broken.plays[0], repeat=3)
    assert "two sessions lock skip roll back (3)" in as_text.line(play)
    assert "(1)" not in as_text.line(broken.plays[0])
