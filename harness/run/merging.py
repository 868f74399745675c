"""Several runs of one subject as one document: a gate and a load run make one acceptance report."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.contracts.problem import BadInput
from harness.document import AdviceDoc, Document, LoadDoc
from harness.run.compose import conclude
from harness.run.keep import DOCUMENT, find_run
from harness.run.records import LOAD_PLAY, protocol_was_proven, records

MACHINES = "more machines"


def read_document(run: Path) -> Document:
    """A run's document. Raises BadInput."""
    folder = find_run(run)
    try:
        return msgspec.json.decode((folder / DOCUMENT).read_bytes(), type=Document)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(f"RUN: {folder / DOCUMENT} cannot be read as a run's document: {error}") from error


def gate_passed(document: Document) -> bool:
    """Whether protocol scenarios were played for each of the records, and none of them failed or was unclear."""
    return protocol_was_proven([play for play in document.plays if play.scenario != LOAD_PLAY])


def merged(documents: Sequence[Document]) -> Document:
    """One document; the last load run counts. Raises BadInput for runs of different subjects."""
    first, *others = documents
    if not others:
        return first
    for other in others:
        if other.subject.name != first.subject.name:
            raise BadInput(f'RUN: runs of "{first.subject.name}" and of "{other.subject.name}" make no report together')
    plays = tuple(play for document in documents for play in document.plays)
    loads = [document.load for document in documents if document.load is not None]
    verdict, summary, notes = conclude(plays)
    whole = msgspec.structs.replace(
        # What was probed stands in a gate's document only.
        next((document for document in documents if document.subject.learned), first),
        command=" && ".join(document.command for document in documents),
        seconds=round(sum(document.seconds for document in documents), 3),
        verdict=verdict.value,
        summary=summary,
        plays=plays,
        requirements=_requirements(documents),
        notes=tuple(dict.fromkeys(note for document in documents for note in (*document.notes, *notes))),
        tables=tuple(table for document in documents for table in document.tables),
    )
    load = _advised(loads[-1], passed=gate_passed(whole)) if loads else None
    return msgspec.structs.replace(whole, load=load, records=records(plays, load))


def _requirements(documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
    names = dict.fromkeys(name for document in documents for name in document.requirements)
    return {
        name: tuple(dict.fromkeys(one for document in documents for one in document.requirements.get(name, ())))
        for name in names
    }


def _advised(load: LoadDoc, *, passed: bool) -> LoadDoc:
    """Machines are advised only beside a passing gate and with a bottleneck shown: now it is known whether there is one."""
    if not passed or not load.bottleneck:
        return load
    text = f"The gate passed, and the run shows what limits: {load.bottleneck}."
    return msgspec.structs.replace(
        load, advice=tuple(AdviceDoc(MACHINES, text) if one.topic == MACHINES else one for one in load.advice)
    )
