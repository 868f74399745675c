"""What the command line holds a run to: --rto and --age. What was not asked for is a threshold to order by, and no verdict."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from harness.capacity import quantities as q
from harness.contracts.verdict import Verdict
from harness.load.analysis import Analysis
from harness.load.measured import Measured
from harness.load.verdict import Part

AGE_SHARE = 0.95


def judge_promises(run: Measured, found: Analysis) -> Iterator[Part]:
    """A part for each."""
    if run.plan.recovery_seconds is not None:
        yield _recovery(run, found, run.plan.recovery_seconds)
    if run.plan.age_seconds is not None:
        yield _age(run, run.plan.age_seconds)


def _recovery(run: Measured, found: Analysis, asked: Fraction) -> Part:
    watched = (run.phases.ended - run.phases.recovery_began) * run.scaled.scale
    took = None if found.current_seconds is None else found.current_seconds * run.scaled.scale
    wanted = f"--rto asks for {q.say_seconds(asked)}"
    name, title, serves = "recovery_in_time", "It is current again in the time that was asked for", ("O2",)
    if took is None and watched <= asked:
        told = f"it was watched for {watched:.0f} s after recovery began, and {wanted}"
        return Part(name, title, Verdict.INCONCLUSIVE, told, serves)
    told = f"current again after {took:.1f} s" if took is not None else f"not current again after {watched:.0f} s"
    verdict = Verdict.PASS if took is not None and took <= asked else _missed(run)
    return Part(name, title, verdict, f"{told}, and {wanted}{_although(run, verdict)}", serves)


def _age(run: Measured, asked: Fraction) -> Part:
    steady = [look for look in run.looks if run.phases.steady_began <= look.at <= run.phases.outage_began]
    name, title, serves = "steady_age", "When nothing is wrong no job waits longer than was asked for", ("O2",)
    wanted = f"--age asks for {q.say_seconds(asked)}"
    if not steady:
        return Part(name, title, Verdict.INCONCLUSIVE, f"the steady phase was not looked at, and {wanted}", serves)
    oldest = float(np.quantile([look.oldest_unstarted_age for look in steady], AGE_SHARE)) * run.scaled.scale
    verdict = Verdict.PASS if oldest <= asked else _missed(run)
    told = f"the oldest runnable job was {oldest:.2f} s old or less {AGE_SHARE:.0%} of the time, and {wanted}"
    return Part(name, title, verdict, told + _although(run, verdict), serves)


def _missed(run: Measured) -> Verdict:
    """Compressed time lengthens what is not compressed: it can show that a promise is kept, not that it is broken."""
    return Verdict.FAIL if run.scaled.scale == 1 else Verdict.INCONCLUSIVE


def _although(run: Measured, verdict: Verdict) -> str:
    if verdict is not Verdict.INCONCLUSIVE:
        return ""
    return f"; time was compressed {run.scaled.scale:g} times, which makes it read long: run it with --time-scale 1"
