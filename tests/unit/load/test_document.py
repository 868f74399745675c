"""The document of a load run, in every face, alone and merged with a gate of the same subject."""

import msgspec
import pytest

from harness.contracts.problem import BadInput
from harness.document import PlayDoc
from harness.load.compose import conclude_run, load_document
from harness.run.compose import RunFacts
from harness.run.merging import merged
from harness.run.records import PROTOCOL_RECORDS, records
from harness.run.subject_file import load_subject, reference_queue_folder
from reports import discover


@pytest.fixture(scope="module")
def subject():
    return load_subject(reference_queue_folder())


@pytest.fixture
def document(imagine, subject):
    return load_document(
        RunFacts("queueproof load", "2026-11-30T18:00:00+0000", 60.0, 7), subject, conclude_run(imagine())
    )


def gate_of(document, verdict="pass"):
    plays = tuple(
        PlayDoc(f"story_{record}", f"story of {record}", verdict, "it was so", ("V3",), record=record)
        for record in PROTOCOL_RECORDS
    )
    return msgspec.structs.replace(
        document, plays=plays, load=None, records=records(plays), command="queueproof gate", verdict=verdict
    )


@pytest.mark.parametrize("face", ["html", "json", "junit", "markdown", "text"])
def test_every_face_renders_it_and_the_same_bytes_twice(document, face):
    render = discover()[face].render
    assert render(document) == render(document)
    assert len(render(document)) > 500


def test_the_fourth_record_is_filled(document):
    record = document.records[-1]
    assert (record.name, record.verdict) == ("net drain", "pass")
    assert {"measured", "fluid, as planned", "replay of its own jobs"} <= {row["what"] for row in record.rows}
    assert "protocol" in record.does_not_prove


def test_both_times_are_told_with_their_meanings(document):
    reads = {one.name: one for one in document.load.estimates}
    assert reads["fluid, as planned"].seconds == pytest.approx(18.0)
    assert reads["backlog ÷ capacity (not the drain time)"].seconds == pytest.approx(7.2)
    assert "waits that arrives at recovery" in reads["backlog ÷ capacity (not the drain time)"].told


def test_a_compressed_run_says_what_it_inflates(document):
    assert any("Time was compressed 10 times" in note and "not compressed" in note for note in document.notes)


def test_drawings_are_inline_and_their_ids_are_their_own(document):
    import re

    page = discover()["html"].render(document).decode()
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert page.count('<figure class="plot">') >= 5
    assert len(ids) == len(set(ids))
    assert not re.search(r'(?:src|href)="https?:', page)
    assert "<script" not in page


def test_a_gate_and_a_load_run_make_one_report(document):
    whole = merged([gate_of(document), document])
    assert [record.verdict for record in whole.records] == ["pass", "pass", "pass", "pass"]
    assert whole.load is not None
    assert len(whole.plays) == 4
    assert whole.verdict == "pass"


def test_a_failed_load_run_fails_the_report(imagine, subject, document):
    run = imagine()
    lost = type(run)(**{**vars(run), "ended": run.ended[1:]})
    failed = load_document(RunFacts("queueproof load", "now", 60.0, 7), subject, conclude_run(lost))
    assert failed.verdict == "fail"
    assert merged([gate_of(document), failed]).verdict == "fail"


def test_machines_are_advised_only_beside_a_passing_gate(document):
    def said(whole):
        return next(one.text for one in whole.load.advice if one.topic == "more machines")

    limited = msgspec.structs.replace(document, load=msgspec.structs.replace(document.load, bottleneck="the disk"))
    assert "no passing gate" in said(limited)
    assert "no passing gate" in said(merged([gate_of(document, "fail"), limited]))
    assert "the disk" in said(merged([gate_of(document), limited]))


def test_runs_of_different_subjects_make_no_report(document):
    other = msgspec.structs.replace(document, subject=msgspec.structs.replace(document.subject, name="other"))
    with pytest.raises(BadInput, match="make no report together"):
        merged([document, other])
