"""Offers compared at equal thresholds: what each costs a month and per million jobs, and which thresholds it misses."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from harness.document import TableDoc, ThresholdDoc
from harness.procurement.quotes import HOURS_PER_MONTH, Line, Offer, Quotes

SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
MILLION = Decimal(1_000_000)
KILOBYTES_PER_GB = Decimal(1_000_000)
CENT = Decimal("0.01")
EVERYBODYS = ("external calls", "egress")  # they come with the jobs, whatever carries them
GROUPS = (
    ("consumers", ("consumers",)),
    ("database", ("database",)),
    ("backup", ("backup",)),
    ("monitoring", ("monitoring",)),
    ("calls and egress", ("external calls", "egress")),
    ("message system", ("message system", "message system operation", "message system replication")),
    ("other", ("other",)),
)


@dataclass(frozen=True)
class Volume:
    """What a month brings: jobs, and calls with those of retries."""

    jobs: Decimal
    calls: Decimal
    kilobytes_per_call: Decimal

    @classmethod
    def of(cls, arrival_per_second: float, attempts_per_job: float, kilobytes_per_call: Decimal) -> "Volume":
        """From the rates of a run."""
        jobs = Decimal(str(arrival_per_second)) * SECONDS_PER_MONTH
        return cls(jobs, jobs * Decimal(str(attempts_per_job)), kilobytes_per_call)

    def monthly(self, line: Line) -> Decimal:
        """What a line comes to in a month, exact."""
        times = {
            "month": Decimal(1),
            "hour": HOURS_PER_MONTH,
            "call": self.calls,
            "GB": self.calls * self.kilobytes_per_call / KILOBYTES_PER_GB,
            "million jobs": self.jobs / MILLION,
        }[line.per]
        return line.price * line.quantity * times


@dataclass(frozen=True)
class Priced:
    """One offer, worked out."""

    offer: Offer
    groups: Mapping[str, Decimal]
    total: Decimal
    per_million_jobs: Decimal
    missed: tuple[str, ...]
    not_shown: tuple[str, ...]

    @property
    def meets(self) -> bool:
        """Every threshold, and each of them shown."""
        return not self.missed and not self.not_shown


def price(quotes: Quotes, volume: Volume, thresholds: Sequence[ThresholdDoc]) -> tuple[Priced, ...]:
    """Each offer against the same thresholds: those that meet them first, then by cost."""
    priced = [_priced(offer, volume, thresholds) for offer in quotes.offers]
    return tuple(sorted(priced, key=lambda one: (not one.meets, one.offer.currency, one.total, one.offer.name)))


def _priced(offer: Offer, volume: Volume, thresholds: Sequence[ThresholdDoc]) -> Priced:
    groups = {
        name: sum((volume.monthly(line) for line in offer.lines if line.part in parts), Decimal(0))
        for name, parts in GROUPS
    }
    total = sum(groups.values(), Decimal(0))
    missed, not_shown = [], []
    for threshold in thresholds:
        measured = offer.measured.get(threshold.name)
        if measured is None:
            not_shown.append(threshold.name)
        elif (measured < threshold.value) if threshold.bound == "at least" else (measured > threshold.value):
            missed.append(threshold.name)
    per_million = total / (volume.jobs / MILLION) if volume.jobs else Decimal(0)
    return Priced(offer, groups, total, per_million, tuple(missed), tuple(not_shown))


def money(amount: Decimal, currency: str) -> str:
    """To the cent, half to even, with its currency."""
    return f"{amount.quantize(CENT, ROUND_HALF_EVEN):,} {currency}"


def tables(priced: Sequence[Priced], volume: Volume, thresholds: Sequence[ThresholdDoc]) -> tuple[TableDoc, ...]:
    """For a report: offers compared, the thresholds they are held to, and every price with where it is from."""
    return (_compared(priced, volume), _held_to(priced, thresholds), _prices(priced, volume))


def _compared(priced: Sequence[Priced], volume: Volume) -> TableDoc:
    used = [
        name
        for name, _ in GROUPS
        if any(one.groups[name] for one in priced) or name in ("consumers", "database", "backup", "monitoring")
    ]
    columns = ("offer", "thresholds", *used, "a month", "per million jobs", "unverified prices")
    rows = tuple(
        (
            one.offer.name,
            _verdict(one),
            *(money(one.groups[name], one.offer.currency) for name in used),
            money(one.total, one.offer.currency),
            money(one.per_million_jobs, one.offer.currency),
            f"{len(one.offer.unverified)} of {len(one.offer.lines)}",
        )
        for one in priced
    )
    currencies = {one.offer.currency for one in priced}
    told = f"{volume.jobs:,.0f} jobs and {volume.calls:,.0f} calls a month, those of retries included."
    if len(currencies) > 1:
        told += f" Amounts in {', '.join(sorted(currencies))} are not compared with one another: no exchange rate is assumed."
    told += _not_priced(priced)
    return TableDoc("Offers compared at equal thresholds", columns, rows, told)


def _not_priced(priced: Sequence[Priced]) -> str:
    """What one offer prices and another leaves out costs the same calls: it looks cheaper than it is."""
    parts = dict.fromkeys(line.part for one in priced for line in one.offer.lines if line.part in EVERYBODYS)
    said = [
        f" {one.offer.name} prices no {part}, and others do: its total is that much too low."
        for one in priced
        for part in parts
        if all(line.part != part for line in one.offer.lines)
    ]
    return "".join(said)


def _verdict(one: Priced) -> str:
    said = []
    if one.missed:
        said.append(f"misses {', '.join(one.missed)}")
    if one.not_shown:
        said.append(f"not shown: {', '.join(one.not_shown)}")
    return "; ".join(said) or "meets all"


def _held_to(priced: Sequence[Priced], thresholds: Sequence[ThresholdDoc]) -> TableDoc:
    columns = ("threshold", "must be", *(one.offer.name for one in priced))
    rows = tuple(
        (
            threshold.name,
            f"{threshold.bound} {threshold.value:g} {threshold.unit}",
            *(_shown(one, threshold) for one in priced),
        )
        for threshold in thresholds
    )
    return TableDoc("The thresholds, and what each offer has shown", columns, rows)


def _shown(one: Priced, threshold: ThresholdDoc) -> str:
    measured = one.offer.measured.get(threshold.name)
    if measured is None:
        return "not shown"
    return f"{measured:g} {threshold.unit}{' (missed)' if threshold.name in one.missed else ''}"


def _prices(priced: Sequence[Priced], volume: Volume) -> TableDoc:
    columns = ("offer", "part", "item", "price", "a month", "source", "date", "verified")
    rows = tuple(
        (
            one.offer.name, line.part, line.item,
            f"{line.quantity.normalize():f} × {line.price:f} {one.offer.currency} per {line.per}",
            money(volume.monthly(line), one.offer.currency), line.source, line.date.isoformat(), "yes" if line.verified else "no",
        )
        for one in priced
        for line in one.offer.lines
    )  # fmt: skip
    return TableDoc("Every price, and where it is from", columns, rows)


def as_csv(priced: Sequence[Priced], volume: Volume) -> bytes:
    """A row per price, for a spreadsheet: exact amounts, the currency in a column of its own."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["offer", "meets", "missed", "not_shown", "part", "item", "quantity", "price", "per", "a_month", "currency", "source", "date", "verified"])  # fmt: skip
    for one in priced:
        for line in one.offer.lines:
            writer.writerow([
                _cell(one.offer.name), "yes" if one.meets else "no", _cell("; ".join(one.missed)), _cell("; ".join(one.not_shown)), line.part,
                _cell(line.item), f"{line.quantity:f}", f"{line.price:f}", line.per,
                f"{volume.monthly(line).quantize(CENT, ROUND_HALF_EVEN):f}", one.offer.currency, _cell(line.source),
                line.date.isoformat(), "yes" if line.verified else "no",
            ])  # fmt: skip
    return out.getvalue().encode()


def _cell(text: str) -> str:
    """No spreadsheet takes a vendor's text for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
