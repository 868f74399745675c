"""The page: self-contained, inert whatever a key holds, accessible, and in the order of a reader's questions."""

import re
from collections import Counter
from html.parser import HTMLParser

import msgspec
import pytest

from harness.document import Document
from reports import as_html

VOID = {"meta", "br", "link", "img", "hr", "input", "source"}


class Page(HTMLParser):
    """Every element with its attributes, the text, and whether tags nest properly."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(as_html.render(document).decode())
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_it_is_self_contained_and_runs_nothing(sample: Document):
    page = Page(sample)
    policy = next(meta["content"] for meta in page.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not {"script", "img", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in {"src", "srcset", "style"} for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)|https?:", as_html.render(sample).decode())


def test_a_key_stays_text(broken: Document, nasty_key: str):
    page = Page(broken)
    assert "<script>alert(1)</script>" in page.text
    assert "\\x1b[31mred\\x1b[0m \\u202eabc \\ud800 @everyone\\n" + "k" * 4096 in page.text
    assert nasty_key not in page.text


def test_every_id_is_unique_and_every_reference_resolves(sample: Document):
    page = Page(sample)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    wanted = {attributes["href"][1:] for attributes in page.named("a")}
    for _, attributes in page.elements:
        wanted |= set((attributes.get("aria-labelledby") or "").split())
        wanted |= set(re.findall(r"url\(#([^)]+)\)", " ".join(value or "" for value in attributes.values())))
    assert wanted <= set(ids)


def test_tables_and_drawings_speak(sample: Document):
    page = Page(sample)
    assert len(page.named("table")) == len(page.named("caption"))
    assert all(cell.get("scope") in {"col", "row"} for cell in page.named("th"))
    drawings = page.named("svg")
    assert drawings
    assert all(drawing["role"] == "img" and len(drawing["aria-labelledby"].split()) == 2 for drawing in drawings)
    assert len(page.named("desc")) == len(drawings)


def test_a_verdict_is_a_word_and_a_sign_wherever_it_is_a_colour(broken: Document):
    text = re.sub(r"\s+", " ", Page(broken).text)
    for sign, word in (("✓", "pass"), ("✗", "fail"), ("?", "inconclusive"), ("–", "not applicable"), ("○", "not run")):
        assert f"{sign}{word}" in text


def test_a_mend_shows_its_statements_as_code(broken: Document):
    shown = as_html.render(broken).decode()
    assert "Let every write name its grant (<code>where id = $1 and token = $2</code>)." in shown


def test_the_order_is_that_of_a_readers_questions(broken: Document):
    headings = re.findall(r'<h2 id="([a-z]+)"', as_html.render(broken).decode())
    assert headings == [
        "reproduce",
        "records",
        "findings",
        "scenarios",
        "chapters",
        "requirements",
        "setting",
        "reading",
    ]


def test_nothing_broken_no_section_for_it(held: Document):
    assert 'id="findings"' not in as_html.render(held).decode()


@pytest.mark.parametrize(
    "record", ["two-session skip", "reclaim after interruption", "stale-token refusal", "net drain"]
)
def test_each_record_says_what_it_does_not_prove(held: Document, record: str):
    page = as_html.render(held).decode()
    card = re.search(rf"<h3>{record}</h3>.*?</article>", page, re.DOTALL)
    assert card
    assert "Not proven" in card[0]
    assert ("Proven in this run" in card[0]) == ("tone-pass" in card[0])


def test_a_requirement_is_as_bad_as_the_worst_that_serves_it(broken: Document, held: Document):
    def verdict(document: Document, name: str) -> str:
        return as_html._requirement(document, name).verdict

    assert verdict(broken, "Q9") == "fail"
    assert verdict(broken, "V3") == "pass"
    assert verdict(held, "Q9") == "not run"


def test_requirements_are_in_natural_order(held: Document):
    names = ["Q10", "Q9", "V1", "Q2"]
    assert sorted(names, key=as_html._natural) == ["Q2", "Q9", "Q10", "V1"]
    shown = as_html.render(msgspec.structs.replace(held, requirements=dict.fromkeys(names, ("x",)))).decode()
    assert re.findall(r'<th scope="row" class="tight">([QV]\d+)</th>', shown) == ["Q2", "Q9", "Q10", "V1"]


@pytest.mark.parametrize(
    ("verdict", "summary", "shown"),
    [
        ("pass", "held (9 of 17 apply)", "9 of 17 apply"),
        ("fail", "broken: stale_write in x", "stale_write in x"),
        ("inconclusive", "the server went away", "the server went away"),
        ("pass", "held", ""),
    ],
)
def test_the_summary_does_not_repeat_the_headline(verdict: str, summary: str, shown: str):
    assert as_html._without(as_html.words.HEADLINES[verdict], summary) == shown
