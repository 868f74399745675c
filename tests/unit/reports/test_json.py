"""The program's face: it round-trips, it validates, and its published schema is current."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reports
from harness.document import Document, PlayDoc, Witness
from reports import as_json

PUBLISHED = Path(reports.__file__).parent / "schema" / "document.schema.json"


def test_the_published_schema_is_current():
    assert PUBLISHED.read_bytes() == as_json.schema(), (
        "the document has changed: python -m reports.as_json > reports/schema/document.schema.json"
    )


def test_what_is_rendered_validates(sample: Document):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_bytes())).validate(json.loads(as_json.render(sample)))


def test_it_reads_back(held: Document):
    assert msgspec.json.decode(as_json.render(held), type=Document) == held


def test_keys_are_sorted(held: Document):
    def ordered(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
        return dict(pairs)

    json.loads(as_json.render(held), object_pairs_hook=ordered)


def test_what_json_cannot_say_is_told_in_words(held: Document):
    play = PlayDoc(
        "a",
        "a",
        "pass",
        "r",
        (),
        figures={"drain_seconds": float("inf")},
        timeline=(Witness(1, 0.0, "sink", "\udc80"),),
    )
    shown = json.loads(as_json.render(msgspec.structs.replace(held, plays=(play,))))
    assert shown["plays"][0]["figures"] == {"drain_seconds": "inf"}
    assert shown["plays"][0]["timeline"][0]["text"] == "\\udc80"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str):
    witness = Witness(1, 0.0, "sink", text)
    play = PlayDoc("a", "a", "pass", text, (), timeline=(witness,))
    assert msgspec.json.decode(msgspec.json.encode(as_json._portable(msgspec.to_builtins(play))), type=PlayDoc) == play
