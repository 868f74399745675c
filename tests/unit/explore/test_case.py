"""Whether a lease can be ended by a write, and what is said where it cannot."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.explore.case import why_no_lease_ends
from harness.explore.inside import NEED_A_TAKEOVER
from harness.run.subject_file import load_subject
from scenarios.workers_every_interleaving import workers_every_interleaving

PASTED = Path(__file__).parents[2] / "integration" / "explore" / "pasted.toml"
IS_EXPRESSION = "subject.jobs.lease_until is not a plain column"


@pytest.fixture
def subject(tmp_path):
    (tmp_path / "pasted.sql").write_text("create table task (id int)")
    (tmp_path / "subject.toml").write_text(PASTED.read_text())
    return load_subject(tmp_path)


@pytest.mark.parametrize(
    ("lease_until", "said"),
    [
        ("lease_until", None),
        ('"Lease Until"', None),
        ("locked_at + interval '2s'", IS_EXPRESSION),
        ("locked_at + make_interval(secs => {lease})", IS_EXPRESSION),
        (None, "subject.jobs.lease_until is not mapped"),
    ],
)
def test_a_lease_that_no_write_can_end_is_said_and_one_that_is_not_there_is_not(subject, lease_until, said):
    mapped = replace(subject, jobs=replace(subject.jobs, lease_until=lease_until))
    assert why_no_lease_ends(mapped) == said
    assert why_no_lease_ends(replace(mapped, lease_seconds=None)) is None


def test_what_needs_a_takeover_is_not_all_that_the_scenario_is_about():
    needs = {each.name for each in NEED_A_TAKEOVER}
    about = [each.name for each in workers_every_interleaving.must_hold]
    assert [name for name in about if name not in needs] == [
        "one_owner",
        "no_double_execution",
        "finished_stays_finished",
    ]
