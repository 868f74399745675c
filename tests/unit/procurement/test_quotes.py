"""Quotes files: read exactly, every mistake named, priced with the calls of retries, compared at equal thresholds."""

import csv
import io
from decimal import Decimal

import pytest

from harness.contracts.problem import BadInput
from harness.document import ThresholdDoc
from harness.procurement.comparison import Volume, as_csv, money, price, tables
from harness.procurement.quotes import read_quotes

LINE = 'part = "{part}"\nitem = "a thing"\nprice = {price}\nsource = "vendor.example/prices"\ndate = 2026-11-01\nverified = true\n'
THRESHOLDS = (
    ThresholdDoc("completion rate", "at least", 20.0, "jobs/s"),
    ThresholdDoc("time until current again", "at most", 483.0, "s"),
)


def offer(
    name="A",
    currency='currency = "EUR"',
    parts=("consumers", "database", "backup", "monitoring"),
    price="10.10",
    more="",
):
    lines = "".join(f"[[offer.line]]\n{LINE.format(part=part, price=price)}" for part in parts)
    return f'[[offer]]\nname = "{name}"\n{currency}\n{more}\n{lines}'


def mistakes(text):
    with pytest.raises(BadInput) as bad:
        read_quotes(text, "quotes.toml")
    return bad.value.mistakes


def test_an_amount_keeps_every_digit():
    quotes = read_quotes(offer(price="0.1"), "quotes.toml")
    assert sum(line.price for line in quotes.offers[0].lines) == Decimal("0.4")
    assert read_quotes(offer(price='"0.000000123"'), "q").offers[0].lines[0].price == Decimal("0.000000123")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (offer(currency=""), 'offer "A": currency is missing'),
        (offer(currency='currency = "euro"'), 'currency "euro" is not a code'),
        (offer(price="-1"), "price: -1 is negative"),
        (offer(price='"cheap"'), "price: 'cheap' is not an amount"),
        (offer(price="nan"), "is not an amount"),
        (offer() + offer(), '2 offers are called "A"'),
        (offer(parts=("consumers", "database", "backup")), "no line prices monitoring"),
        (offer(parts=("consumers", "database", "backup", "monitoring", "message system")), "a message system is priced with its operation"),
        (offer(parts=("consumers", "database", "backup", "monitoring", "luck")), "'luck' is not one of"),
        (offer().replace('source = "vendor.example/prices"\n', ""), "line 1: source is missing"),
        (offer().replace("date = 2026-11-01\n", ""), "line 1: date is missing"),
        (offer().replace("verified = true\n", ""), "line 1: verified must be true or false"),
        (offer().replace('name = "A"', ""), "offer 1: name is missing"),
        (offer(more='colour = "red"'), "unknown key 'colour'"),
        ("", "at least one [[offer]]"),
        ("not toml", "not TOML"),
    ],
)  # fmt: skip
def test_bad_input_names_the_offer_and_the_value(text, told):
    assert any(told in mistake for mistake in mistakes(text)), mistakes(text)


def test_every_mistake_is_told_at_once():
    assert len(mistakes(offer(currency="", price="-1", parts=("consumers",)))) == 5


def test_calls_and_egress_count_the_retries():
    volume = Volume.of(12, 1.1111111, Decimal(2))
    text = offer(more="") + (
        '[[offer.line]]\npart = "external calls"\nitem = "call"\nprice = "0.0001"\nper = "call"\nsource = "s"\ndate = 2026-01-01\n'
        'verified = false\n[[offer.line]]\npart = "egress"\nitem = "out"\nprice = "0.09"\nper = "GB"\nsource = "s"\ndate = 2026-01-01\nverified = false\n'
    )
    (priced,) = price(read_quotes(text, "q"), volume, ())
    assert volume.jobs == 12 * 730 * 3600
    calls = volume.jobs * Decimal("1.1111111")
    assert priced.groups["calls and egress"] == calls * Decimal("0.0001") + calls * 2 / 1_000_000 * Decimal("0.09")
    assert priced.per_million_jobs == priced.total / (volume.jobs / 1_000_000)
    assert len(priced.offer.unverified) == 2


def test_those_that_meet_the_thresholds_come_first_then_the_cheaper():
    measured = '[offer.measured]\n"completion rate" = {rate}\n"time until current again" = {time}'
    text = (
        offer("cheap and slow", price="1", more=measured.format(rate=15, time=900))
        + offer("dear and good", price="9", more=measured.format(rate=25, time=300.5))
        + offer("good", price="5", more=measured.format(rate=21, time=400))
        + offer("silent", price="0.5")
    )
    priced = price(read_quotes(text, "q"), Volume.of(12, 1, Decimal(2)), THRESHOLDS)
    assert [one.offer.name for one in priced] == ["good", "dear and good", "silent", "cheap and slow"]
    assert priced[3].missed == ("completion rate", "time until current again")
    assert priced[2].not_shown == ("completion rate", "time until current again")
    assert not priced[2].meets


def test_currencies_are_not_compared_with_one_another():
    text = offer("A") + offer("B", currency='currency = "USD"', price="1")
    volume = Volume.of(1, 1, Decimal(1))
    compared = tables(price(read_quotes(text, "q"), volume, ()), volume, ())[0]
    assert "EUR, USD are not compared" in compared.told


def test_the_csv_has_a_row_per_price_and_no_formula():
    volume = Volume.of(12, 1, Decimal(2))
    text = offer("=1+1").replace('item = "a thing"', 'item = "@sum"', 1)
    rows = list(csv.DictReader(io.StringIO(as_csv(price(read_quotes(text, "q"), volume, ()), volume).decode())))
    assert len(rows) == 4
    assert rows[0]["offer"] == "'=1+1"
    assert rows[0]["item"] == "'@sum"
    assert (rows[0]["a_month"], rows[0]["currency"], rows[0]["verified"]) == ("10.10", "EUR", "yes")


def test_the_csv_tells_what_was_missed_from_what_was_not_shown():
    volume = Volume.of(12, 1, Decimal(2))
    text = offer(more='[offer.measured]\n"completion rate" = 15')
    (row, *_) = csv.DictReader(io.StringIO(as_csv(price(read_quotes(text, "q"), volume, THRESHOLDS), volume).decode()))
    assert (row["meets"], row["missed"], row["not_shown"]) == ("no", "completion rate", "time until current again")


def test_money_is_told_to_the_cent_with_its_currency():
    assert money(Decimal("1234.005"), "EUR") == "1,234.00 EUR"
    assert money(Decimal("0.015"), "CHF") == "0.02 CHF"


def test_the_example_is_read_and_the_message_system_carries_its_operation_and_replication():
    from importlib.resources import files

    text = files("harness.procurement").joinpath("example_quotes.toml").read_text(encoding="utf-8")
    priced = price(read_quotes(text, "example"), Volume.of(12, 1.05, Decimal(2)), THRESHOLDS)
    assert [one.offer.name for one in priced] == ["rented machines", "a message system beside the database"]
    assert priced[0].meets
    assert priced[1].groups["message system"] > 3 * 29
