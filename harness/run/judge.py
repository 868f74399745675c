"""From a story to a verdict: every invariant judges it, every fact that must have happened is looked for.

The same for a play that has just ended and for a stored history, which needs neither the subject nor a server.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.fact import Fact
from harness.contracts.invariant import Invariant, Unknown
from harness.contracts.verdict import Finding, Verdict
from harness.history.events import LeftOut
from harness.history.facts.named import fact_named
from harness.history.reading import Truncated, read_history
from harness.history.story import Story, stories, without_garbage_collection
from harness.invariants import discover


@dataclass(frozen=True)
class Judgement:
    """One invariant's word on one play. ``reason`` says why it is no pass, or why it does not apply."""

    invariant: Invariant[Story]
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()


@dataclass(frozen=True)
class FactSeen:
    """Something that had to happen, and the entries that show it; no entries, it did not."""

    sentence: str
    evidence: tuple[int, ...]

    @property
    def happened(self) -> bool:
        return bool(self.evidence)


@dataclass(frozen=True)
class Judged:
    """One play, judged. ``reason`` is one sentence: why this verdict."""

    play: str
    scenario: str
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]
    facts: tuple[FactSeen, ...]
    judgements: tuple[Judgement, ...]
    left_out: tuple[str, ...] = ()  # parts that were not played, each with why

    @property
    def missing(self) -> tuple[str, ...]:
        """The sentences of what had to happen and did not."""
        return tuple(fact.sentence for fact in self.facts if not fact.happened)


def judge(
    story: Story,
    invariants: Sequence[Invariant[Story]] | None = None,
    facts: Sequence[Fact[Story]] | None = None,
) -> Judged:
    """Judge one play. Left out, invariants are all there are, and facts are those that the play's beginning names."""
    began = story.began
    scenario = began.scenario if began is not None else story.play
    excused = began.excuses if began is not None else ()
    known = discover() if invariants is None else tuple(invariants)
    judgements = tuple(_without_vacuous_pass(story, _judge_one(story, each, excused)) for each in known)
    seen, strange = _look_for_facts(story, facts)
    told = began.must_hold if began is not None else ()
    # What the story is about is told first; what follows from it, after.
    in_order = sorted(
        judgements, key=lambda each: told.index(each.invariant.name) if each.invariant.name in told else len(told)
    )
    findings = tuple(finding for judgement in in_order for finding in judgement.findings)
    verdict, reason = _verdict(story, judgements, findings, seen, strange)
    return Judged(story.play, scenario, verdict, reason, findings, seen, judgements, _left_out(story))


def judge_history(path: Path, *, truncated: Truncated | None = None) -> dict[str, Judged]:
    """Judge every play of a stored history again. Raises BadInput when the file cannot be read."""
    with without_garbage_collection():
        told = stories(read_history(path, truncated=truncated))
        judged: dict[str, Judged] = {}
        for play in list(told):
            story = told.pop(play)  # let go of it as soon as it is judged
            if story.began is not None:
                judged[play] = judge(story)
        return judged


def _judge_one(story: Story, invariant: Invariant[Story], excused: Iterable[str]) -> Judgement:
    if invariant.name in excused:
        return Judgement(invariant, Verdict.NOT_APPLICABLE, "this story itself makes it meaningless")
    findings: list[Finding] = []
    unknowns: list[Unknown] = []
    try:
        missing = invariant.applies(story)
        if missing is not None:
            return Judgement(invariant, Verdict.NOT_APPLICABLE, missing)
        for said in invariant.judge(story):
            if isinstance(said, Finding):
                findings.append(said)
            else:
                unknowns.append(said)
    except Exception as error:  # noqa: BLE001  a judge that falls over has judged nothing: never a pass, whatever fell
        unknowns.append(Unknown(f"the invariant {invariant.name} itself failed: {type(error).__name__}: {error}"))
    if findings:
        return Judgement(invariant, Verdict.FAIL, findings[0].sentence, tuple(findings), tuple(unknowns))
    if unknowns:
        return Judgement(invariant, Verdict.INCONCLUSIVE, unknowns[0].reason, (), tuple(unknowns))
    return Judgement(invariant, Verdict.PASS)


def _without_vacuous_pass(story: Story, judgement: Judgement) -> Judgement:
    """What only a part could break that was left out has not held. What was broken all the same stays broken."""
    if judgement.verdict is Verdict.PASS:
        for left_out in (seen.what for seen in story.left_out):
            if judgement.invariant.name in left_out.unjudged:
                return Judgement(judgement.invariant, Verdict.NOT_APPLICABLE, _left_out_told(left_out))
    return judgement


def _left_out(story: Story) -> tuple[str, ...]:
    return tuple(_left_out_told(seen.what) for seen in story.left_out)


def _left_out_told(left_out: LeftOut) -> str:
    return f"{left_out.what} was left out, because {left_out.why}"


def _look_for_facts(story: Story, facts: Sequence[Fact[Story]] | None) -> tuple[tuple[FactSeen, ...], list[str]]:
    """The facts and their evidence, and complaints about sentences that nobody knows and facts that fell over."""
    strange: list[str] = []
    wanted: list[Fact[Story]] = []
    if facts is not None:
        wanted = list(facts)
    elif story.began is not None:
        for sentence in story.began.must_happen:
            fact = fact_named(sentence)
            if fact is None:
                strange.append(f"this version knows no fact that says '{sentence}'")
            else:
                wanted.append(fact)
    seen = []
    for fact in wanted:
        evidence: tuple[int, ...] = ()
        try:
            evidence = fact.evidence(story)
        except Exception as error:  # noqa: BLE001  as above: what could not be looked for has not been seen
            strange.append(f"looking for '{fact.sentence}' itself failed: {type(error).__name__}: {error}")
        seen.append(FactSeen(fact.sentence, evidence))
    return tuple(seen), strange


def _verdict(
    story: Story,
    judgements: Sequence[Judgement],
    findings: Sequence[Finding],
    facts: Sequence[FactSeen],
    strange: Sequence[str],
) -> tuple[Verdict, str]:
    if story.incomplete:
        return Verdict.INCONCLUSIVE, f"truth incomplete: {story.incomplete[0].what.why}"
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        return Verdict.FAIL, findings[0].sentence + more
    doubts = [*_troubles(story), *strange, *_missing(facts), *_absent(story, judgements)]
    doubts += [f"{j.invariant.name}: {j.reason}" for j in judgements if j.verdict is Verdict.INCONCLUSIVE]
    if doubts:
        more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
        return Verdict.INCONCLUSIVE, doubts[0] + more
    named = [j for j in judgements if story.began is not None and j.invariant.name in story.began.must_hold]
    if named and all(j.verdict is Verdict.NOT_APPLICABLE for j in named):
        return Verdict.NOT_APPLICABLE, named[0].reason
    held = sum(1 for j in judgements if j.verdict is Verdict.PASS)
    return Verdict.PASS, f"held ({'; '.join([f'{held} of {len(judgements)} apply', *_left_out(story)])})"


def _troubles(story: Story) -> Iterable[str]:
    if story.ended is None:
        yield "the recording stops before the play had ended"
    elif story.ended.trouble is not None:
        whose = {"harness": "trouble of the harness", "subject": "trouble of the subject"}
        yield f"{whose.get(story.ended.whose, 'trouble')}: {story.ended.trouble}"


def _missing(facts: Sequence[FactSeen]) -> Iterable[str]:
    absent = [fact.sentence for fact in facts if not fact.happened]
    if absent:
        yield f"did not happen: {', '.join(absent)}"


def _absent(story: Story, judgements: Sequence[Judgement]) -> Iterable[str]:
    if story.began is None:
        return
    known = {judgement.invariant.name for judgement in judgements}
    for name in story.began.must_hold:
        if name not in known:
            yield f"this version has no invariant named {name}"
