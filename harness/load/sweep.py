"""A sweep: the same load with other settings, compared, before more machines are thought of.

The cheapest setting that meets the thresholds is the one with the fewest slots, then the smallest prefetch, then the smallest
batch: slots cost machines, prefetch costs fairness and lease safety, batch costs only memory.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness.contracts.problem import BadInput
from harness.contracts.subject import Subject
from harness.contracts.verdict import Verdict
from harness.document import Document, TableDoc
from harness.load.compose import Loaded, load_document, load_part
from harness.load.plan import LoadPlan
from harness.run.compose import RunFacts

NAMES = ("slots", "batch", "prefetch", "workers")
MOST_SETTINGS = 24
COLUMNS = (
    "setting", "verdict", "current again", "completions/s", "claim wait, p95", "claimed, not executing", "execution", "thresholds",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Names and numbers that differ from the plan."""

    values: tuple[tuple[str, int], ...]

    @property
    def shown(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.values)

    @property
    def folder(self) -> str:
        """Its place within the run's folder."""
        return "-".join(f"{name}{value}" for name, value in self.values)

    def apply(self, plan: LoadPlan) -> LoadPlan:
        """The plan with them."""
        changes = dict(self.values)
        if "slots" in changes and "workers" not in changes:
            changes["workers"] = min(plan.workers, changes["slots"])
        return dataclasses.replace(plan, **changes)  # type: ignore[arg-type]

    @property
    def cost(self) -> tuple[int, ...]:
        """What is compared: fewer slots first."""
        values = dict(self.values)
        return tuple(values.get(name, 0) for name in ("slots", "workers", "prefetch", "batch"))


def settings(sweeps: Sequence[str]) -> tuple[Setting, ...]:
    """``batch=1,5,10`` and ``slots=8,16`` together: every combination."""
    axes: dict[str, list[int]] = {}
    mistakes = []
    for text in sweeps:
        name, _, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",")]
        if name not in NAMES:
            mistakes.append(f'sweep: "{text}" does not begin with one of {", ".join(NAMES)}')
        elif name in axes:
            mistakes.append(f'sweep: "{text}": {name} is given twice')
        elif not all(value.isascii() and value.isdigit() and int(value) > 0 for value in values):
            mistakes.append(f'sweep: "{text}" needs whole numbers above zero, such as {name}=1,5,10')
        else:
            axes[name] = sorted({int(value) for value in values})
    if mistakes:
        raise BadInput(*mistakes)
    if not axes:
        return ()
    combined = [Setting(tuple(zip(axes, chosen, strict=True))) for chosen in itertools.product(*axes.values())]
    if len(combined) > MOST_SETTINGS:
        raise BadInput(f"sweep: {len(combined)} combinations are more than {MOST_SETTINGS}; each is a run of its own")
    return tuple(combined)


def compare(facts: RunFacts, subject: Subject, found: Sequence[tuple[Setting, Loaded]]) -> Document:
    """The document of the cheapest setting that meets everything (else of the first), with the comparison in it."""
    good = [each for each in found if _meets(each[1], subject)]
    chosen = min(good, key=lambda each: each[0].cost) if good else found[0]
    document = load_document(facts, subject, chosen[1])
    assert document.load is not None
    told = (
        f"The cheapest setting that meets every threshold that was measured: {chosen[0].shown}. Slots cost machines, prefetch costs"
        " fairness and lease safety, batch costs memory."
        if good
        else "No setting meets every threshold that was measured; the first is shown in full."
    )
    rows = tuple(_row(setting, loaded, subject) for setting, loaded in found)
    table = TableDoc("Settings compared", COLUMNS, rows, told)
    return _with_table(document, table)


def _with_table(document: Document, table: TableDoc) -> Document:
    assert document.load is not None
    load = msgspec.structs.replace(document.load, tables=(*document.load.tables, table))
    return msgspec.structs.replace(document, load=load)


def _meets(loaded: Loaded, subject: Subject) -> bool:
    part = load_part(loaded, subject, gate_passed=False)
    return loaded.verdict is Verdict.PASS and all(threshold.met is not False for threshold in part.thresholds)


def _row(setting: Setting, loaded: Loaded, subject: Subject) -> tuple[str, ...]:
    part = load_part(loaded, subject, gate_passed=False)
    figures, found = part.figures, loaded.found
    missed = [threshold.name for threshold in part.thresholds if threshold.met is False]
    return (
        setting.shown,
        loaded.verdict.value,
        "not within the run" if found.current_seconds is None else f"{found.current_seconds:.1f} s",
        f"{found.rates.completion_per_second:.1f}",
        f"{figures.get('claim_wait_p95_ms', '—')} ms",
        f"{figures.get('claimed_not_executing_ms', '—')} ms",
        f"{found.rates.service_seconds * 1000:.1f} ms",
        "all met" if not missed else f"missed: {', '.join(missed)}",
    )
