"""Foreign text made safe to show."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from reports import words


def test_control_and_format_characters_become_visible():
    assert words.legible("a\x1b[31m\n\t\u202e\ud800\U000e0001é✓") == "a\\x1b[31m\\n\\t\\u202e\\ud800\\U000e0001é✓"


@given(st.text())
def test_nothing_that_acts_is_left(text: str):
    shown = words.legible(text)
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in shown)
    shown.encode()
    assert words.legible(shown) == shown


@given(st.text(), st.integers(min_value=40, max_value=200))
def test_shortening_keeps_both_ends_and_the_bound(text: str, limit: int):
    shown = words.shorten(text, limit)
    assert len(shown) <= limit
    assert shown == text or (shown[:8] == text[:8] and shown[-4:] == text[-4:])


def test_a_long_key_is_shortened_inside_a_sentence():
    key = "q'" * 300
    for spelling in (key, repr(key)):
        assert "(600 characters)" in words.told(f"worker 1 took {spelling} twice", key)


def test_listing():
    assert [words.listing(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_the_line_to_reproduce_is_of_the_worst_play(broken, held, inconclusive):
    assert "complete_by_id" in words.to_reproduce(broken)
    assert "network_cut" in words.to_reproduce(inconclusive)
    assert words.to_reproduce(held) == held.command


def test_counts_are_worst_first(broken):
    assert words.counts(broken.plays) == (("fail", 1), ("inconclusive", 1), ("pass", 2), ("not applicable", 1))


def test_back_ticks_set_off_code_when_they_come_in_pairs():
    assert words.spans("a `b` c `d`") == (("a ", False), ("b", True), (" c ", False), ("d", True))
    assert words.spans("`b`") == (("b", True),)
    assert words.spans("a `b c") == (("a `b c", False),)
    assert words.spans("") == ()
