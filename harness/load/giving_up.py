"""Jobs that were given up: a queue that sets its backlog aside is current at once, and has drained nothing."""

from collections.abc import Iterator

from harness.contracts.verdict import Verdict
from harness.load.measured import Measured
from harness.load.verdict import Part

MOST_SHARE = 0.05  # of the jobs that became due in the outage


def judge_giving_up(run: Measured) -> Iterator[Part]:
    """A part when the outage's jobs were given up without success; none when they were not."""
    began, over = run.phases.outage_began, run.phases.recovery_began
    due = int(((run.dues >= began) & (run.dues < over)).sum())
    given_up = sum(began <= float(run.dues[job]) < over for job in run.given_up)
    if given_up:
        told = (
            f"{given_up} of the {due} jobs that became due in the outage were given up, dead or set aside for a person"
        )
        few = given_up <= MOST_SHARE * due
        why = "" if few else ": what was measured is the drain of the others, and of no such backlog"
        yield Part(
            "backlog_was_worked_off",
            "The outage's jobs are worked off, not given up",
            Verdict.PASS if few else Verdict.INCONCLUSIVE,
            told + why,
            ("L2",),
        )
