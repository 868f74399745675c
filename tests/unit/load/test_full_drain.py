"""The worked example at its own pace, as it was measured once on the reference queue: 12/s, 0.8 s, 16 slots, 300 s of outage."""

from pathlib import Path

import msgspec
import pytest

from harness.document import Document
from reports import discover

STORED = Path(__file__).parents[2] / "golden" / "load" / "drain_full.json"


@pytest.fixture(scope="module")
def document():
    return msgspec.json.decode(STORED.read_bytes(), type=Document)


def test_theory_and_measurement_stand_side_by_side(document):
    found = {one.name: one for one in document.load.estimates}
    assert found["fluid, as planned"].seconds == 450
    assert (round(found["fluid, as planned"].low), round(found["fluid, as planned"].high)) == (417, 483)
    assert found["backlog ÷ capacity (not the drain time)"].seconds == 180
    measured = found["measured"].seconds
    assert 417 < measured < 483
    assert found["fluid, measured rates"].low < measured < found["fluid, measured rates"].high
    assert measured == pytest.approx(found["replay of its own jobs"].seconds, rel=0.02)


def test_its_terms_add_up(document):
    measured = next(one.seconds for one in document.load.estimates if one.name == "measured")
    assert 450 + sum(term.seconds for term in document.load.terms) == pytest.approx(measured, abs=0.05)


def test_the_age_falls_as_theory_says(document):
    ages = {series.expected: series for series in document.load.series if series.name == "oldest age"}
    recovery = next(phase.began for phase in document.load.phases if phase.name == "recovery")
    quarter = [n for n, at in enumerate(ages[False].at) if 100 < at - recovery < 350]
    assert len(quarter) > 5
    for n in quarter:
        assert ages[False].values[n] == pytest.approx(ages[True].values[n], abs=40)


@pytest.mark.parametrize("face", ["html", "json", "junit", "markdown", "text"])
def test_a_stored_document_is_rendered_by_every_face(document, face):
    assert len(discover()[face].render(document)) > 500
