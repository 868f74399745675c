"""``quote``: a quotes file against a load run's thresholds, with the gate that must have passed before machines are advised."""

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness.contracts.problem import BadInput
from harness.contracts.verdict import Verdict
from harness.document import AdviceDoc, Document, LoadDoc
from harness.procurement.comparison import Priced, Volume, as_csv, price, tables
from harness.procurement.quotes import Offer, Quotes, read_quotes
from harness.run.keep import DOCUMENT, find_run
from harness.run.records import LOAD_PLAY

ARRIVAL, ATTEMPTS = "arrival_per_second", "attempts_per_job"


@dataclass(frozen=True)
class Quoted:
    """What comes out: a document for the faces, a CSV, and whether any offer meets the thresholds."""

    document: Document
    csv: bytes
    priced: tuple[Priced, ...]
    any_meets: bool


def read_document(run: Path) -> Document:
    """A run's document. Raises BadInput."""
    folder = find_run(run)
    try:
        return msgspec.json.decode((folder / DOCUMENT).read_bytes(), type=Document)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(f"RUN: {folder / DOCUMENT} cannot be read as a run's document: {error}") from error


def quote(file: Path, sized: Path, gate: Path | None) -> Quoted:
    """Price the offers. Raises BadInput."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"QUOTES {file}: cannot be read: {error}") from error
    quotes = read_quotes(text, file.name)
    document = read_document(sized)
    load = _load_of(document, "size", sized)
    quotes = replace(quotes, offers=tuple(_with_run(offer, load, file.parent) for offer in quotes.offers))
    volume = _volume(load, quotes)
    priced = price(quotes, volume, load.thresholds)
    gated = document if gate is None else read_document(gate)
    advised = _advice(document, load, gated, priced)
    load = msgspec.structs.replace(
        load, advice=(*(one for one in load.advice if one.topic not in ("more machines", "which offer")), *advised)
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


def gate_passed(document: Document, subject: str) -> bool:
    """Whether a gate of this subject passed: protocol scenarios were played, none failed or was unclear, one passed."""
    plays = [play for play in document.plays if play.scenario != LOAD_PLAY]
    if document.subject.name != subject:
        raise BadInput(f'gate: that run is of "{document.subject.name}", not of "{subject}"')
    return bool(plays) and Verdict.worst(Verdict(play.verdict) for play in plays) is Verdict.PASS


def _advice(document: Document, load: LoadDoc, gated: Document, priced: tuple[Priced, ...]) -> tuple[AdviceDoc, ...]:
    passed = gate_passed(gated, document.subject.name)
    if not passed:
        return (
            AdviceDoc(
                "more machines",
                "No offer is advised: there is no passing gate of the same subject (name one with --gate).",
            ),
        )
    if not load.bottleneck:
        return (
            AdviceDoc("more machines", "No offer is advised: the run shows no bottleneck that machines would remove."),
        )
    best = next((one for one in priced if one.meets), None)
    if best is None:
        return (
            AdviceDoc(
                "which offer", f"No offer has shown that it meets every threshold. What limits: {load.bottleneck}."
            ),
        )
    unsure = f" {len(best.offer.unverified)} of its prices are not verified." if best.offer.unverified else ""
    return (
        AdviceDoc(
            "which offer",
            f"{best.offer.name} is the cheapest that has shown it meets every threshold.{unsure} What limits: {load.bottleneck}.",
        ),
    )
