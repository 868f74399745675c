"""A quotes file: several offers, each priced part by part, every price with its source, its date and whether it was verified.

Amounts are Decimal from the text on, and belong to a currency. All mistakes of a file are named at once.
"""

import datetime as dt
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from harness.contracts.problem import BadInput

PARTS = (
    "consumers", "database", "backup", "monitoring", "external calls", "egress",
    "message system", "message system operation", "message system replication", "other",
)  # fmt: skip
APART = ("consumers", "database", "backup", "monitoring")  # in every offer, each for itself
WITH_MESSAGES = ("message system operation", "message system replication")
PER = ("month", "hour", "call", "GB", "million jobs")
HOURS_PER_MONTH = Decimal(730)
MOST_OFFERS = 50
MOST_LINES = 100


@dataclass(frozen=True)
class Line:
    """One price of an offer: so much for each, so many of them."""

    part: str
    item: str
    price: Decimal
    per: str
    quantity: Decimal
    source: str
    date: dt.date
    verified: bool


@dataclass(frozen=True)
class Offer:
    """One vendor's whole offer. ``measured``: what was measured on its machines, by threshold."""

    name: str
    currency: str
    lines: tuple[Line, ...]
    measured: Mapping[str, float]
    run: str | None = None  # a load run on its machines, from which that is read

    @property
    def unverified(self) -> tuple[Line, ...]:
        """Prices that nobody has checked."""
        return tuple(line for line in self.lines if not line.verified)


@dataclass(frozen=True)
class Quotes:
    """The whole file. ``kilobytes_per_call``: what leaves for each call, for egress."""

    offers: tuple[Offer, ...]
    kilobytes_per_call: Decimal


def read_quotes(text: str, shown: str) -> Quotes:
    """Raises BadInput with a line for every mistake."""
    try:
        tables = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{shown}: not TOML: {error}") from error
    reader = _Reader()
    quotes = reader.quotes(tables)
    if reader.mistakes:
        raise BadInput(*(f"{shown}: {mistake}" for mistake in reader.mistakes))
    return quotes


class _Reader:
    """Reads on after a mistake, so that all of them are told."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def quotes(self, tables: Mapping[str, Any]) -> Quotes:
        for key in tables:
            if key not in ("offer", "kilobytes_per_call"):
                self.mistakes.append(f"unknown key {key!r}; there are [[offer]] and kilobytes_per_call")
        given = tables.get("offer", [])
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            self.mistakes.append("offer: at least one [[offer]] is needed")
            given = []
        if len(given) > MOST_OFFERS:
            self.mistakes.append(f"offer: {len(given)} offers are more than {MOST_OFFERS}")
        offers = [self._offer(n, table) for n, table in enumerate(given[:MOST_OFFERS], 1)]
        names = [offer.name for offer in offers]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                self.mistakes.append(f'offer: {names.count(name)} offers are called "{name}"; give each its own name')
        size = self._amount("kilobytes_per_call", tables.get("kilobytes_per_call", 2))
        return Quotes(tuple(offers), size)

    def _offer(self, number: int, table: Mapping[str, Any]) -> Offer:
        name = table.get("name")
        if not isinstance(name, str) or not name.strip():
            self.mistakes.append(f"offer {number}: name is missing")
            name = f"offer {number}"
        where = f'offer "{name}"'
        for key in table:
            if key not in ("name", "currency", "line", "measured", "run"):
                self.mistakes.append(f"{where}: unknown key {key!r}")
        currency = table.get("currency")
        if not isinstance(currency, str) or len(currency) != 3 or not currency.isascii() or not currency.isupper():
            told = "is missing" if currency is None else f'"{currency}" is not a code'
            self.mistakes.append(f"{where}: currency {told}; write three capital letters, such as EUR")
            currency = "???"
        given = table.get("line", [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            self.mistakes.append(f"{where}: line: [[offer.line]] tables are needed")
            given = []
        if len(given) > MOST_LINES:
            self.mistakes.append(f"{where}: {len(given)} lines are more than {MOST_LINES}")
        lines = [self._line(f"{where}, line {n}", line) for n, line in enumerate(given[:MOST_LINES], 1)]
        self._complete(where, [line.part for line in lines])
        run = table.get("run")
        if run is not None and not isinstance(run, str):
            self.mistakes.append(f"{where}: run: {run!r} is not a path")
            run = None
        return Offer(name.strip(), currency, tuple(lines), dict(self._measured(where, table.get("measured", {}))), run)

    def _complete(self, where: str, parts: list[str]) -> None:
        for part in APART:
            if part not in parts:
                self.mistakes.append(
                    f"{where}: no line prices {part}; it is priced apart (a price of 0 needs its source, too)"
                )
        if "message system" in parts:
            for part in WITH_MESSAGES:
                if part not in parts:
                    self.mistakes.append(
                        f"{where}: a message system is priced with its {part.removeprefix('message system ')}"
                    )

    def _measured(self, where: str, table: Any) -> Iterator[tuple[str, float]]:
        if not isinstance(table, dict):
            self.mistakes.append(f"{where}: measured: a table of threshold names and numbers is needed")
            return
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                self.mistakes.append(f"{where}: measured.{name}: {value!r} is not a number")
            else:
                yield name, float(value)

    def _line(self, where: str, table: Mapping[str, Any]) -> Line:
        for key in table:
            if key not in ("part", "item", "price", "per", "quantity", "source", "date", "verified"):
                self.mistakes.append(f"{where}: unknown key {key!r}")
        date, verified = table.get("date"), table.get("verified")
        if not isinstance(date, dt.date):
            self.mistakes.append(
                f"{where}: date {'is missing' if date is None else f'{date!r} is no date'}; write it as 2026-11-30"
            )
            date = dt.date.min
        if not isinstance(verified, bool):
            self.mistakes.append(f"{where}: verified must be true or false")
        price = table.get("price")
        if price is None:
            self.mistakes.append(f"{where}: price is missing")
            price = 0
        return Line(
            part=self._choice(f"{where}: part", table.get("part"), PARTS),
            item=self._text(f"{where}: item", table.get("item")),
            price=self._amount(f"{where}: price", price),
            per=self._choice(f"{where}: per", table.get("per", "month"), PER),
            quantity=self._amount(f"{where}: quantity", table.get("quantity", 1)),
            source=self._text(f"{where}: source", table.get("source")),
            date=date,
            verified=verified is True,
        )

    def _choice(self, where: str, value: Any, of: tuple[str, ...]) -> str:
        if value in of:
            return str(value)
        self.mistakes.append(f"{where}: {value!r} is not one of {', '.join(of)}")
        return of[-1]

    def _text(self, where: str, value: Any) -> str:
        if isinstance(value, str) and value.strip():
            return value.strip()
        self.mistakes.append(f"{where} is missing")
        return ""

    def _amount(self, where: str, value: Any) -> Decimal:
        """Numbers may stand with or without quotes; either way no digit of them is lost."""
        try:
            amount = (
                Decimal(value.strip() if isinstance(value, str) else value) if not isinstance(value, bool) else None
            )
        except (ArithmeticError, TypeError, ValueError):
            amount = None
        if amount is None or not amount.is_finite():
            self.mistakes.append(f"{where}: {value!r} is not an amount")
            return Decimal(0)
        if amount < 0:
            self.mistakes.append(f"{where}: {value} is negative")
            return Decimal(0)
        return amount
