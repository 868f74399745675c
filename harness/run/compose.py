"""From judged plays to the document that the report faces render."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.contracts.scenario import Scenario
from harness.contracts.subject import Subject
from harness.contracts.verdict import Finding, Verdict
from harness.document import (
    SCHEMA_VERSION,
    Document,
    FactDoc,
    FindingDoc,
    JudgementDoc,
    PlayDoc,
    ServerDoc,
    SubjectDoc,
    Witness,
)
from harness.history.figures import figures
from harness.history.story import Story
from harness.history.timeline import moments, witness
from harness.invariants import discover
from harness.postgres.cluster import Cluster
from harness.run.judge import Judged
from harness.run.probe import Probed
from harness.run.records import records
from harness.run.requirements import proofs, titles
from harness.run.version import VERSION

Known = Mapping[tuple[str, str], str]
"""Accepted findings: (scenario, invariant) to the reason why it is accepted."""


@dataclass(frozen=True)
class RunFacts:
    """What is the same for every play of a run."""

    command: str
    started_at: str
    seconds: float
    seed: int
    notes: tuple[str, ...] = ()


def play_document(
    scenario: Scenario, story: Story, judged: Judged, *, repeat: int, seconds: float, reproduce: str, known: Known
) -> PlayDoc:
    """One play, judged, with the few moments that matter."""
    return PlayDoc(
        scenario=scenario.name,
        title=scenario.title,
        verdict=judged.verdict.value,
        reason=judged.reason,
        serves=scenario.serves,
        repeat=repeat,
        seconds=round(seconds, 3),
        story=scenario.docstring,
        record=scenario.record,
        findings=tuple(_finding(story, scenario.name, finding, known) for finding in judged.findings),
        facts=tuple(
            FactDoc(fact.sentence, fact.happened, tuple(_witnesses(story, fact.evidence))) for fact in judged.facts
        ),
        judgements=tuple(
            JudgementDoc(
                judgement.invariant.name,
                judgement.invariant.title,
                judgement.verdict.value,
                judgement.reason,
                judgement.invariant.serves,
            )
            for judgement in judged.judgements
        ),
        left_out=judged.left_out,
        must_hold=tuple(invariant.name for invariant in scenario.must_hold),
        timeline=tuple(moments(story, judged.findings)),
        figures=figures(story),
        reproduce=reproduce,
    )


def not_applicable(scenario: Scenario, reason: str, *, reproduce: str) -> PlayDoc:
    """A scenario that the subject lacks something for."""
    return PlayDoc(
        scenario=scenario.name,
        title=scenario.title,
        verdict=Verdict.NOT_APPLICABLE.value,
        reason=reason,
        serves=scenario.serves,
        story=scenario.docstring,
        record=scenario.record,
        reproduce=reproduce,
    )


def not_played(scenario: Scenario, reason: str, *, reproduce: str) -> PlayDoc:
    """A scenario that the run was stopped before: nothing is known of it."""
    return PlayDoc(
        scenario=scenario.name,
        title=scenario.title,
        verdict=Verdict.INCONCLUSIVE.value,
        reason=reason,
        serves=scenario.serves,
        story=scenario.docstring,
        record=scenario.record,
        reproduce=reproduce,
    )


def _finding(story: Story, scenario: str, finding: Finding, known: Known) -> FindingDoc:
    judges = {invariant.name: invariant for invariant in discover()}
    judge = judges[finding.invariant]
    return FindingDoc(
        invariant=finding.invariant,
        title=judge.title,
        sentence=finding.sentence,
        serves=judge.serves,
        key=finding.key,
        workers=finding.workers,
        witnesses=tuple(_witnesses(story, finding.witness)),
        known=known.get((scenario, finding.invariant)),
        mend=judge.mend,
    )


def _witnesses(story: Story, numbers: Sequence[int]) -> list[Witness]:
    found = [witness(story, entry) for number in numbers if (entry := story.entry(number)) is not None]
    return sorted(found, key=lambda each: each.t_ms)  # stable: what happened at once stays as the invariant named it


def run_document(
    facts: RunFacts,
    subject: Subject,
    probed: Probed | None,
    cluster: Cluster | None,
    plays: Sequence[PlayDoc],
    scenarios: Sequence[Scenario],
) -> Document:
    """The whole run."""
    verdict, summary, notes = conclude(plays)
    return Document(
        schema_version=SCHEMA_VERSION,
        tool_version=VERSION,
        command=facts.command,
        started_at=facts.started_at,
        seconds=round(facts.seconds, 3),
        seed=facts.seed,
        verdict=verdict.value,
        summary=summary,
        subject=subject_document(subject, probed),
        server=ServerDoc(cluster.version, cluster.source, cluster.address.shown()) if cluster else ServerDoc("", ""),
        plays=tuple(plays),
        records=records(plays),
        requirements=proofs([scenario for scenario in scenarios if any(p.scenario == scenario.name for p in plays)]),
        requirement_titles=titles(),
        notes=(*facts.notes, *notes),
    )


def _accepted(play: PlayDoc) -> bool:
    return play.verdict == Verdict.FAIL and bool(play.findings) and all(one.known is not None for one in play.findings)


def conclude(plays: Sequence[PlayDoc]) -> tuple[Verdict, str, tuple[str, ...]]:
    """The run's verdict, its one-line summary, and notes. Accepted findings are shown, and do not fail the run."""
    accepted = [play for play in plays if _accepted(play)]
    counted = [play for play in plays if play not in accepted]
    verdict = Verdict.worst(Verdict(play.verdict) for play in counted)
    if verdict is Verdict.NOT_APPLICABLE and accepted:
        verdict = Verdict.PASS
    applying = [play for play in plays if play.verdict != Verdict.NOT_APPLICABLE]
    of = f"{len(applying)} of {len(plays)} apply"
    broken = [play for play in counted if play.verdict == Verdict.FAIL]
    unclear = [play for play in counted if play.verdict == Verdict.INCONCLUSIVE]
    known = f", {len(accepted)} with accepted findings" if accepted else ""
    match verdict:
        case Verdict.FAIL:
            caught = sorted({finding.invariant for play in broken for finding in play.findings})
            summary = f"broken: {len(broken)} of {_scenarios(applying)} failed, by {', '.join(caught)} ({of}{known})"
        case Verdict.INCONCLUSIVE:
            summary = f"inconclusive: {len(unclear)} of {_scenarios(applying)} could not be judged ({of}{known})"
        case Verdict.NOT_APPLICABLE:
            summary = f"nothing applies (0 of {len(plays)})"
        case _:
            summary = f"held ({of}{known})"
    # A terminal cuts the line of a play that held: what it did not show is told once more where nothing is cut.
    left_out = dict.fromkeys(f"{play.title}: {told}" for play in plays for told in play.left_out)
    return verdict, summary, tuple(left_out)


def _scenarios(plays: Sequence[PlayDoc]) -> str:
    return "1 scenario" if len(plays) == 1 else f"{len(plays)} scenarios"


def subject_document(subject: Subject, probed: Probed | None) -> SubjectDoc:
    """The subject as declared and, when it was probed, as learned."""
    declared = {
        "order": subject.order,
        "sink": subject.sink,
        "recovery": subject.recovery,
        "clock": subject.clock,
        "restarts": subject.restarts,
        "lease": _seconds(subject.lease_seconds),
        "heartbeat": _seconds(subject.heartbeat_seconds),
        "takeover within": _seconds(subject.takeover_within_seconds) if subject.takeover_within_seconds else "never",
        "max attempts": str(subject.max_attempts or "not declared"),
        "table": subject.jobs.table,
        "token": subject.jobs.token or "none",
    }
    if probed is None:
        return SubjectDoc(subject.name, subject.guarantee, declared)
    return SubjectDoc(
        subject.name,
        subject.guarantee,
        declared,
        dict(sorted(probed.book.learned().items())),
        {point.value: told for point, told in probed.stops_at.items()},
    )


def _seconds(value: float | None) -> str:
    return "not declared" if value is None else f"{value:g} s"


def reproduce_line(subject_argument: str | None, scenario: str, seed: int, server: str) -> str:
    """The one line that plays this scenario again."""
    parts = ["queueproof", "gate"]
    if subject_argument is not None:
        parts.append(subject_argument)
    parts += ["--only", scenario, "--seed", str(seed)]
    if server != "embedded":
        parts += ["--server", server]
    return shlex.join(parts)
