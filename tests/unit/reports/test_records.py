"""The four records of O1: always four, each apart, each saying what it does not prove."""

import msgspec
import pytest

from harness.document import Document
from harness.run.records import records
from reports import as_markdown, as_text
from tests.unit.reports.conftest import stale


def test_all_four_always_in_one_order():
    found = records(())
    assert [record.name for record in found] == [
        "two-session skip",
        "reclaim after interruption",
        "stale-token refusal",
        "net drain",
    ]
    assert {record.verdict for record in found} == {"not run"}
    assert all(record.proves and record.does_not_prove and not record.rows for record in found)


def test_each_takes_only_its_own_plays(broken: Document):
    by_name = {record.name: record for record in records(broken.plays)}
    assert [row["scenario"] for row in by_name["two-session skip"].rows] == ["two sessions lock skip roll back"]
    assert [row["scenario"] for row in by_name["reclaim after interruption"].rows] == [
        "worker killed after commit before call"
    ]
    assert len(by_name["stale-token refusal"].rows) == 3


def test_a_record_is_as_bad_as_its_worst_play(broken: Document, inconclusive: Document, held: Document):
    verdicts = [
        {record.name: record.verdict for record in document.records}["stale-token refusal"]
        for document in (broken, inconclusive, held)
    ]
    assert verdicts == ["fail", "inconclusive", "not applicable"]


@pytest.mark.parametrize(
    ("must_hold", "expected"),
    [
        (("no_stale_write", "effect_once"), "inconclusive"),  # what broke is not what the story is about
        (("no_stale_write", "stale_write"), "fail"),
        ((), "fail"),  # an older document does not say what its stories are about
    ],
)
def test_a_record_fails_only_by_what_its_story_is_about(must_hold: tuple[str, ...], expected: str):
    play = msgspec.structs.replace(stale("invoice-1"), must_hold=must_hold)
    assert {finding.invariant for finding in play.findings} == {"stale_write"}
    record = records((play,))[2]
    assert (record.name, record.verdict) == ("stale-token refusal", expected)
    assert record.rows[0]["verdict"] == expected
    assert ("its scenario failed for another reason (stale_write)" in record.reason) is (expected == "inconclusive")


def test_a_record_that_one_play_breaks_is_broken_whatever_another_failed_by():
    beside = msgspec.structs.replace(stale("invoice-1"), must_hold=("no_stale_write",))
    broken = msgspec.structs.replace(beside, must_hold=("stale_write",))
    record = records((beside, broken))[2]
    assert (record.verdict, record.reason) == ("fail", "")
    assert [row["verdict"] for row in record.rows] == ["inconclusive", "fail"]


def test_what_failed_by_something_else_is_told_beside_the_record(broken: Document):
    play = msgspec.structs.replace(stale("invoice-1"), must_hold=("no_stale_write",))
    document = msgspec.structs.replace(broken, records=records((play,)))
    for face in (as_text, as_markdown):
        assert "failed for another reason (stale_write)" in " ".join(face.render(document).decode().split()).replace(
            "\\", ""
        )


def test_net_drain_is_never_inferred_from_a_protocol_play(held: Document):
    for pretended in ("net drain", None):
        drain = records((msgspec.structs.replace(held.plays[0], record=pretended),))[3]
        assert (drain.verdict, drain.rows) == ("not run", ())


def test_a_row_tells_what_happened_and_what_was_measured(held: Document):
    row = records(held.plays)[0].rows[0]
    assert row["what happened"].startswith("the first session held its row locked; ")
    assert row["measured"] == "first transaction idle in transaction; release spread 0.41 ms; second claim 3.10 ms"


@pytest.mark.parametrize("name", ["two-session skip", "reclaim after interruption", "stale-token refusal"])
def test_no_protocol_record_is_silent_about_its_limits(name: str):
    record = {record.name: record for record in records(())}[name]
    assert any(word in record.does_not_prove for word in ("Nothing about", "Not that"))
