"""A sweep's comparison: one row per setting, and the cheapest that meets everything in full."""

import pytest

from harness.load.compose import conclude_run
from harness.load.sweep import compare, settings
from harness.run.compose import RunFacts
from harness.run.subject_file import load_subject, reference_queue_folder

FACTS = RunFacts("queueproof load --sweep slots=14,16", "now", 100.0, 7)


@pytest.fixture(scope="module")
def subject():
    return load_subject(reference_queue_folder())


def test_the_cheapest_setting_that_meets_everything_is_shown_in_full(imagine, subject):
    few, many = settings(["slots=16,20"])
    found = [
        (many, conclude_run(imagine({"slots": "20", "rto": "400s"}))),
        (few, conclude_run(imagine({"rto": "400s"}))),
    ]
    document = compare(FACTS, subject, found)
    table = document.load.tables[-1]
    assert [row[0] for row in table.rows] == ["slots 20", "slots 16"]
    assert document.load.setting["slots"].startswith("16 ")
    assert "slots 16" in table.told


def test_when_no_setting_meets_them_that_is_said(imagine, subject):
    found = [(settings(["slots=16"])[0], conclude_run(imagine({"rto": "20s"})))]
    table = compare(FACTS, subject, found).load.tables[-1]
    assert "No setting meets" in table.told
    assert "missed: completion rate" in table.rows[0][-1]


def test_local_wait_and_execution_stand_apart(imagine, subject):
    found = [(settings(["batch=1"])[0], conclude_run(imagine()))]
    table = compare(FACTS, subject, found).load.tables[-1]
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["claimed, not executing"].endswith(" ms")
    assert float(row["execution"].removesuffix(" ms")) == pytest.approx(80, rel=0.1)
