"""``quote``: a quotes file against a load run's thresholds, with the gate that must have passed before machines are advised."""

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness.contracts.problem import BadInput
from harness.document import AdviceDoc, Document, LoadDoc
from harness.procurement.comparison import Priced, Volume, as_csv, price, tables
from harness.procurement.quotes import Offer, Quotes, read_quotes
from harness.run.merging import MACHINES, gate_passed, read_document

ARRIVAL, ATTEMPTS = "arrival_per_second", "attempts_per_job"
WHICH = "which offer"
EXAMPLE_BY = "such a file is printed by: queueproof quote --example"


@dataclass(frozen=True)
class Quoted:
    """What comes out: a document for the faces, a CSV, and whether any offer meets the thresholds."""

    document: Document
    csv: bytes
    priced: tuple[Priced, ...]
    any_meets: bool


def quote(file: Path, sized: Path, gate: Path | None) -> Quoted:
    """Price the offers. Raises BadInput."""
    try:
        quotes = read_quotes(file.read_text(encoding="utf-8"), file.name)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"QUOTES {file}: cannot be read: {error}", EXAMPLE_BY) from error
    except BadInput as wrong:
        raise BadInput(*wrong.mistakes, EXAMPLE_BY) from wrong
    document = read_document(sized)
    load = _load_of(document, "size", sized)
    quotes = replace(quotes, offers=tuple(_with_run(offer, load, file.parent) for offer in quotes.offers))
    volume = _volume(load, quotes)
    priced = price(quotes, volume, load.thresholds)
    gated = document if gate is None else read_document(gate)
    advised = _advice(document, load, gated, priced)
    load = msgspec.structs.replace(
        load, advice=(*(one for one in load.advice if one.topic not in (MACHINES, WHICH)), *advised)
    )
    met = any(one.meets for one in priced)
    document = msgspec.structs.replace(document, load=load, tables=tables(priced, volume, load.thresholds))
    return Quoted(document, as_csv(priced, volume), priced, met)


def _load_of(document: Document, field: str, run: Path) -> LoadDoc:
    if document.load is None or ARRIVAL not in document.load.demand:
        raise BadInput(f"{field}: {run} is no load run; make one with: queueproof load")
    return document.load


def _with_run(offer: Offer, load: LoadDoc, beside: Path) -> Offer:
    """What was measured on its machines, when a run there is named; what the file says itself goes first."""
    if offer.run is None:
        return offer
    path = beside / offer.run
    theirs = _load_of(read_document(path), f'offer "{offer.name}": run', path)
    if any(
        theirs.setting.get(name) != value
        for name, value in load.setting.items()
        if name in ("arrivals", "service", "outage")
    ):
        raise BadInput(f'offer "{offer.name}": run: {offer.run} had another job mix than the run it is compared with')
    measured = {one.name: one.measured for one in theirs.thresholds if one.measured is not None}
    return replace(offer, measured=measured | dict(offer.measured))


def _volume(load: LoadDoc, quotes: Quotes) -> Volume:
    return Volume.of(load.demand[ARRIVAL], load.demand.get(ATTEMPTS, 1.0), quotes.kilobytes_per_call)


def _advice(document: Document, load: LoadDoc, gated: Document, priced: tuple[Priced, ...]) -> tuple[AdviceDoc, ...]:
    if gated.subject.name != document.subject.name:
        raise BadInput(f'gate: that run is of "{gated.subject.name}", not of "{document.subject.name}"')
    ours, theirs = document.subject.declared, gated.subject.declared
    if differs := [name for name in ours if theirs.get(name) != ours[name]]:
        told = ", ".join(f"{name} {theirs.get(name, 'not declared')} there, {ours[name]} here" for name in differs)
        raise BadInput(f'gate: that run is of "{document.subject.name}" as it was declared otherwise: {told}')
    if not gate_passed(gated):
        return (
            AdviceDoc(
                MACHINES,
                "No offer is advised: there is no passing gate of the same subject (name one with --gate).",
            ),
        )
    if not load.bottleneck:
        return (AdviceDoc(MACHINES, "No offer is advised: the run shows no bottleneck that machines would remove."),)
    limits = f"What limits: {load.bottleneck}."
    meeting = [one for one in priced if one.meets]
    if not meeting:
        return (AdviceDoc(WHICH, f"No offer has shown that it meets every threshold. {limits}"),)
    currencies = dict.fromkeys(one.offer.currency for one in meeting)
    cheapest = [next(one for one in meeting if one.offer.currency == currency) for currency in currencies]
    said = [_cheapest(one, alone=len(cheapest) == 1) for one in cheapest]
    return (AdviceDoc(WHICH, " ".join([*said, limits])),)


def _cheapest(one: Priced, *, alone: bool) -> str:
    """No exchange rate is assumed, so there is a cheapest one for each currency."""
    among = "" if alone else f" among the offers in {one.offer.currency}"
    unsure = f" {len(one.offer.unverified)} of its prices are not verified." if one.offer.unverified else ""
    return f"{one.offer.name} is the cheapest{among} that has shown it meets every threshold.{unsure}"
