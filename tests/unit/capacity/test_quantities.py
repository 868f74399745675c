"""Exact numbers with units, and what is refused."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity import quantities as q
from harness.contracts.problem import BadInput


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("12/s", Fraction(12)),
        ("12/min", Fraction(1, 5)),
        ("12/h", Fraction(1, 300)),
        ("0.1 / s", Fraction(1, 10)),
        ("90/minute", Fraction(3, 2)),
    ],
)
def test_rates_are_per_second(text: str, per_second: Fraction) -> None:
    assert q.parse_rate(text, "arrival") == per_second


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.8s", Fraction(4, 5)),
        ("800ms", Fraction(4, 5)),
        ("0.8ms", Fraction(1, 1250)),
        ("5m", Fraction(300)),
        ("1.5h", Fraction(5400)),
        (".5 s", Fraction(1, 2)),
    ],
)
def test_durations_are_seconds(text: str, seconds: Fraction) -> None:
    assert q.parse_duration(text, "service") == seconds


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.005233123, "5.233 ms"), (0.8, "800 ms"), (417.13, "417.1 s (6 min 57 s)"), (16.7721, "16.77 s"), (0.0, "0 s")],
)
def test_an_estimated_time_is_told_in_the_units_of_every_other(seconds: float, told: str) -> None:
    assert q.say_about(seconds) == told


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.0418671, "4.2 %"), (0.000767, "0.077 %"), (1.0, "100 %"), (0.6, "60 %"), (0.0, "0 %"), (1e-9, "1e-07 %")],
)
def test_a_chance_is_told_in_percent(share: float, told: str) -> None:
    assert q.say_chance(share) == told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("12", "no unit"),
        ("5m", "not a rate"),
        ("12s", "not a rate"),
        ("12/day", "unknown unit"),
        ("12/", "unknown unit"),
        ("0/s", "above zero"),
        ("-3/s", "above zero"),
        ("lots", "number"),
        ("", "number"),
        ("nan/s", "number"),
        ("inf/s", "number"),
        ("1,000/s", "not a rate"),
        ("1e400/s", "not a rate"),
        ("٣/s", "number"),
        ("9" * 5000 + "/s", "longer"),
    ],
)
def test_a_rate_that_cannot_be_read_names_field_and_value(text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        q.parse_rate(text, "arrival")
    assert str(refused.value).startswith(f'arrival: "{text[:40]}')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.8", "no unit"),
        ("12/min", "is a rate"),
        ("12/s", "is a rate"),
        ("3 weeks", "unknown unit"),
        ("5M", "unknown unit"),
        ("0s", "above zero"),
        ("-1s", "above zero"),
        ("0,8s", "unknown unit"),
        ("s", "number"),
    ],
)
def test_a_duration_that_cannot_be_read_names_field_and_value(text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        q.parse_duration(text, "service")
    assert str(refused.value).startswith(f'service: "{text}"')


def test_zero_is_a_duration_only_where_it_means_something() -> None:
    assert q.parse_duration("0ms", "overhead", zero=True) == 0
    with pytest.raises(BadInput, match="not be negative"):
        q.parse_duration("-1ms", "overhead", zero=True)


@pytest.mark.parametrize(
    ("text", "share"), [("0.6", Fraction(3, 5)), ("60%", Fraction(3, 5)), ("2.5 %", Fraction(1, 40))]
)
def test_ratios_are_shares_of_one(text: str, share: Fraction) -> None:
    assert q.parse_ratio(text, "busy") == share


@pytest.mark.parametrize("text", ["1", "100%", "1.2", "60", "0", "0%", "-0.1", "0.6s", "half"])
def test_a_ratio_of_one_or_more_or_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=f'^busy: "{text}"'):
        q.parse_ratio(text, "busy")


def test_a_slow_class_is_a_share_and_a_duration() -> None:
    assert q.parse_share_of_time("5%:8s", "slow") == (Fraction(1, 20), Fraction(8))
    for text in ("5%", "5%:8", "5:8s", "100%:8s", ":8s"):
        with pytest.raises(BadInput, match="slow"):
            q.parse_share_of_time(text, "slow")


def test_inflow_is_steps_and_a_rate_that_stays() -> None:
    assert q.parse_inflow("12/s:150s, 18/s", "inflow") == ((Fraction(12), Fraction(150)), (Fraction(18), None))
    for text in ("12/s:150s", "12/s,18/s", "", "12/s:0s,18/s"):
        with pytest.raises(BadInput, match="inflow"):
            q.parse_inflow(text, "inflow")


def test_counts_and_plain_numbers() -> None:
    assert q.parse_count("16", "slots") == 16
    assert q.parse_number("0.5", "service-cv2") == Fraction(1, 2)
    for text in ("0", "-1", "1.5", "many", "1000001", "1" * 50):
        with pytest.raises(BadInput, match="slots"):
            q.parse_count(text, "slots")
    for text in ("-1", "1s"):
        with pytest.raises(BadInput, match="service-cv2"):
            q.parse_number(text, "service-cv2")


def test_floats_are_refused_because_their_last_digit_was_not_typed() -> None:
    assert q.exact(Decimal("0.8"), "service") == Fraction(4, 5)
    assert q.exact(3, "slots") == 3
    for value in (0.8, True, Decimal("NaN"), Decimal("Infinity"), "0.8"):
        with pytest.raises(BadInput, match="service"):
            q.exact(value, "service")  # type: ignore[arg-type]


@given(st.decimals(min_value="0.0001", max_value="100000", places=4))
def test_a_duration_reads_back_what_was_written(number: Decimal) -> None:
    assert q.parse_duration(f"{number}s", "service") == Fraction(number)
    assert q.parse_duration(f"{number}ms", "service") * 1000 == Fraction(number)
    assert q.parse_rate(f"{number}/min", "arrival") * 60 == Fraction(number)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (Fraction(450), "450 s (7 min 30 s)"),
        (Fraction(4, 5), "800 ms"),
        (Fraction(0), "0 s"),
        (Fraction(3), "3 s"),
        (Fraction(3600), "3600 s (1 h)"),
        (Fraction(26100, 13), "2007.6923 s (33 min 28 s)"),
    ],
)
def test_seconds_are_said_as_people_read_them(seconds: Fraction, said: str) -> None:
    assert q.say_seconds(seconds) == said


def test_tiny_numbers_keep_their_digits() -> None:
    assert q.say_number(Fraction(1, 30000)) == "3.33e-05"
