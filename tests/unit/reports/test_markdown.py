"""A comment on a pull request: what a key holds stays text, and a table stays a table."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.document import Document
from reports import as_markdown, words

MARKDOWN = MarkdownIt("commonmark").enable("table")
OURS = {"text", "code_inline", "strong_open", "strong_close", "em_open", "em_close", "softbreak"}


def tokens_of(document: Document) -> list[Token]:
    return MARKDOWN.parse(as_markdown.render(document).decode())


def test_nothing_of_a_key_becomes_markup(broken: Document):
    for token in tokens_of(broken):
        assert token.type != "html_block"
        assert {child.type for child in token.children or ()} <= OURS


def test_every_row_has_as_many_cells_as_its_head(broken: Document):
    widths: list[int] = []
    tables: list[set[int]] = []
    for token in tokens_of(broken):
        if token.type == "table_open":
            tables.append(set())
        elif token.type == "tr_open":
            widths.append(0)
        elif token.type in {"td_open", "th_open"}:
            widths[-1] += 1
        elif token.type == "tr_close":
            tables[-1].add(widths[-1])
    assert [len(table) for table in tables] == [1, 1, 1]  # the proof, the scenarios, the records


def test_it_mentions_nobody(broken: Document):
    key = "@everyone see https://example.org/x.png"
    finding = msgspec.structs.replace(broken.plays[1].findings[0], key=key, sentence=f"{key} broke")
    document = msgspec.structs.replace(broken, plays=(msgspec.structs.replace(broken.plays[1], findings=(finding,)),))
    shown = as_markdown.render(document).decode()
    assert "@everyone" not in shown
    assert "https://example" not in shown


def test_verdict_table_records_and_story_are_there(broken: Document):
    shown = as_markdown.render(broken).decode()
    assert shown.startswith("## ✗ my_queue: broken: ")
    assert "| ✗ fail | worker paused past its lease completes late | 4.6 |" in shown
    assert "| **net drain** | ○ not run |" in shown
    assert "because worker 2 had been granted the job" in shown


def test_a_mend_shows_its_statements_as_code(broken: Document):
    shown = as_markdown.render(broken).decode()
    assert "_Usually mended by:_ Let every write name its grant (`where id = $1 and token = $2`)." in shown


def test_it_fits_a_comment(broken: Document):
    many = msgspec.structs.replace(broken, plays=broken.plays * 80)
    shown = as_markdown.render(many)
    assert len(shown.decode()) < 65_536
    assert "a comment has no more room" in shown.decode()


def inline(markdown: str) -> list[Token]:
    (paragraph,) = [token for token in MARKDOWN.parse(markdown) if token.type == "inline"]
    return paragraph.children or []


@given(st.text(alphabet=st.characters() | st.sampled_from("*_`|<>&[]()#!~@\\$:/ ")))
def test_any_text_stays_text(text: str):
    children = inline(f"x{as_markdown.plain(text)}x")
    assert {child.type for child in children} <= {"text"}
    shown = "".join(child.content for child in children).replace("\u200b", "")
    assert shown == f"x{words.legible(text)}x"


@given(st.text(alphabet=st.sampled_from("`ab |*<"), min_size=1).filter(str.strip))
def test_any_text_stays_in_its_code_span(text: str):
    (child,) = inline(as_markdown.code(text))
    assert child.type == "code_inline"
    assert child.content.strip() == text.strip()
