"""A queue that gives its backlog up has drained nothing."""

import dataclasses

import numpy as np
import pytest

from harness.contracts.verdict import Verdict
from harness.load.compose import conclude_run

NAME = "backlog_was_worked_off"


def of_the_outage(run):
    began, over = run.phases.outage_began, run.phases.recovery_began
    return np.flatnonzero((run.dues >= began) & (run.dues < over)).tolist()


def test_no_job_given_up_is_no_part(imagine):
    assert all(part.name != NAME for part in conclude_run(imagine()).parts)


@pytest.mark.parametrize(
    ("every", "verdict"), [(1, Verdict.INCONCLUSIVE), (10, Verdict.INCONCLUSIVE), (50, Verdict.PASS)]
)
def test_what_was_given_up_is_no_drain(imagine, every, verdict):
    run = imagine()
    jobs = of_the_outage(run)
    given_up = dict.fromkeys(jobs[::every], run.phases.recovery_began - 0.1)
    loaded = conclude_run(dataclasses.replace(run, given_up=given_up))
    part = next(part for part in loaded.parts if part.name == NAME)
    assert part.verdict is verdict
    assert f"{len(given_up)} of the {len(jobs)} jobs that became due in the outage were given up" in part.reason
    assert (loaded.verdict is Verdict.PASS) is (verdict is Verdict.PASS)


def test_a_job_given_up_in_the_steady_phase_is_not_the_outages(imagine):
    run = imagine()
    loaded = conclude_run(dataclasses.replace(run, given_up={0: 1.0}))
    assert all(part.name != NAME for part in loaded.parts)
