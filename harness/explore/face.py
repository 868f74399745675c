"""What an exploration prints: for people, and as JSON."""

from harness.explore.run import Explored, Report, Violation


def as_text(report: Report) -> str:
    """For a terminal: coverage case by case, and the counterexample as a story."""
    lines = [
        f"{each.verdict.value:13} {each.case.told()}: {each.coverage()} [{each.seconds:.1f} s]"
        for each in report.explored
    ]
    shown = report.counterexample
    if shown is not None:
        lines.append("")
        lines.append(
            f"{shown.schedule}: {shown.workers} workers, {shown.jobs} job{'s' * (shown.jobs != 1)}, {shown.moves} moves"
        )
        lines += shown.story
        lines.append("")
        lines += shown.sentences or ["It held."]
        lines.append("")
        lines.append(f"Again: {shown.replay}")
    if report.left_out:
        lines.append("")
        lines.append("Left out: " + "; ".join(report.left_out) + ".")
    lines.append(f"{report.verdict.value}: {report.subject} on {report.server}, {report.seconds:.1f} s")
    return "\n".join(lines)


def as_data(report: Report) -> dict[str, object]:
    """For a program."""
    return {
        "verdict": report.verdict.value,
        "subject": report.subject,
        "server": report.server,
        "seconds": round(report.seconds, 3),
        "seed": report.seed,
        "cases": [_case_data(each) for each in report.explored],
        "left_out": list(report.left_out),
        **({"replayed": _violation_data(report.replayed)} if report.replayed is not None else {}),
    }


def _case_data(each: Explored) -> dict[str, object]:
    tally = each.tally
    data: dict[str, object] = {
        "case": each.case.told(),
        "workers": each.case.workers,
        "jobs": each.case.jobs,
        "expiries": each.case.expiries,
        "verdict": each.verdict.value,
        "coverage": each.coverage(),
        "complete": tally.complete,
        "interleavings": tally.interleavings,
        "interleavings_in_all": tally.interleavings if tally.complete else None,
        "interleavings_about": each.estimate,
        "runs": tally.runs,
        "redundant_runs": tally.redundant,
        "diverged_runs": tally.diverged,
        "branches_given_up": tally.given_up,
        "undecided_runs": tally.undecided,
        "longest": tally.longest,
        "seconds": round(each.seconds, 3),
        "violated_after_seconds": None
        if each.violated_after_seconds is None
        else round(each.violated_after_seconds, 3),
    }
    if each.sampled is not None and each.chance is not None:
        data["sampled"] = {
            "runs": each.sampled.runs,
            "different": each.sampled.interleavings,
            "depth": each.chance.depth,
            "probability_per_run": each.chance.per_run,
            "probability": each.chance.overall,
        }
    if each.violation is not None:
        data["violation"] = _violation_data(each.violation)
    return data


def _violation_data(found: Violation) -> dict[str, object]:
    return {
        "invariants": list(found.invariants),
        "schedule": found.schedule,
        "found_as": found.found_as,
        "workers": found.workers,
        "jobs": found.jobs,
        "moves": found.moves,
        "sentences": list(found.sentences),
        "story": list(found.story),
        "replay": found.replay,
        "isolationtester_spec": found.spec or None,
        "why_no_spec": found.why_no_spec or None,
    }
