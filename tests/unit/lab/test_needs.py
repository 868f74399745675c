"""A scenario that does not apply says what to declare, in names that a subject file knows."""

import re
from dataclasses import replace

import pytest

from harness.contracts.scenario import Need
from harness.contracts.subject import Subject
from harness.explore.inside import can_be_stepped
from harness.lab.needs import BOUNDS_ATTEMPTS, GROUPS, LEASE, PRIORITIES
from harness.run.subject_file import load_subject, reference_queue_folder
from harness.run.subject_tables import SubjectTable


def _reference() -> Subject:
    return load_subject(reference_queue_folder())


def _known() -> set[str]:
    known = set()
    for name, field in SubjectTable.model_fields.items():
        known.add(f"subject.{name}")
        known |= {f"subject.{name}.{inner}" for inner in getattr(field.annotation, "model_fields", {})}
    return known


@pytest.mark.parametrize(
    ("need", "lacks"),
    [
        (LEASE, replace(_reference(), lease_seconds=None)),
        (BOUNDS_ATTEMPTS, replace(_reference(), max_attempts=None)),
        (can_be_stepped, replace(_reference(), poll_seconds=None)),
        (GROUPS, replace(_reference(), jobs=replace(_reference().jobs, group=None))),
        (GROUPS, replace(_reference(), enqueue_sql="select %(key)s")),
        (PRIORITIES, replace(_reference(), order="none")),
        (PRIORITIES, replace(_reference(), enqueue_sql="select %(key)s")),
    ],
)
def test_what_is_not_declared_is_named(need: Need, lacks: Subject) -> None:
    assert need.missing(_reference(), frozenset()) is None
    missing = need.missing(lacks, frozenset())
    assert missing is not None
    assert "to have this judged" in missing
    named = re.findall(r"subject\.[a-z_.]*[a-z_]", missing)
    assert named
    assert set(named) <= _known()
