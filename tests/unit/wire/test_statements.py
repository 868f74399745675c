"""Fingerprints and the book."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.statements import StatementBook, fingerprint, literals


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", "select ?"),
        ("SELECT\n  *  FROM jobs -- all of them\n WHERE id=$1;", "select * from jobs where id=?"),
        ("select 'it''s', E'it\\'s', U&'x', B'01'", "select ?, ?, ?, ?"),
        ("select /* a /* nested */ comment */ 1", "select ?"),
        ('select "Case" , Case', 'select "Case" , case'),
        ("select $$it's$$, $tag$ $$ $tag$", "select ?, ?"),
        ("select job1.x2 from job1", "select job1.x2 from job1"),
        ("select 1.5e-3, .5, 0x1F, 1_000", "select ?, ?, ?, ?"),
        ("delete from q where id in (1, 2 ,3)", "delete from q where id in (?)"),
        ("delete from q where id = any(array[1,2])", "delete from q where id = any(array[?])"),
        ("select 'unterminated", "select ?"),
        ("select /* unterminated", "select"),
        ("select $x$ unterminated", "select ?"),
        ("begin; update jobs set n = 5; commit;", "begin; update jobs set n = ?; commit"),
        ("", ""),
    ],
)
def test_fingerprint(sql: str, expected: str) -> None:
    assert fingerprint(sql) == expected


@given(st.text())
def test_any_text_has_a_fingerprint_and_it_is_its_own(text: str) -> None:
    once = fingerprint(text)
    assert fingerprint(once) == once


@given(
    st.text().filter(lambda text: "\0" not in text),
    st.integers(min_value=0),
    st.sampled_from([" ", "\n", "\t  ", " /* x */ "]),
)
def test_literals_and_spacing_do_not_matter(text: str, number: int, gap: str) -> None:
    quoted = text.replace("'", "''")
    sql = f"UPDATE jobs{gap}SET payload = '{quoted}' WHERE{gap}id = {number}"
    assert fingerprint(sql) == "update jobs set payload = ? where id = ?"
    assert literals(sql) == [text, str(number)]


def test_numbers_that_count_or_bound_name_no_row() -> None:
    sql = "update j set attempts = attempts + 1 where n >= 2 and id = any(array[3, 4]) and f(x => 5) limit 6 offset 7"
    assert literals(sql) == ["3", "4", "5"]


def test_a_huge_statement_is_fingerprinted_without_being_remembered() -> None:
    assert fingerprint(f"select '{'x' * 100_000}'") == "select ?"


def test_the_book_answers_in_order_of_frequency() -> None:
    book = StatementBook()
    for change in ("release", "claim", "claim"):
        book.learn("select claim(?)", change)
    assert book.changes("select claim(?)") == ("claim", "release")
    assert book.changes("select ?") == ()
    assert book.learned() == {"claim": ("select claim(?)",), "release": ("select claim(?)",)}


@pytest.mark.parametrize("control", ["begin", "commit", "rollback to savepoint a", "set local x = ?", ""])
def test_a_statement_that_only_steers_the_transaction_is_never_learned(control: str) -> None:
    book = StatementBook()
    book.learn(control, "claim")
    assert book.changes(control) == ()


def test_a_claim_between_begin_and_commit_is_learned() -> None:
    book = StatementBook()
    book.learn("begin; update jobs set x = ?; commit", "claim")
    assert book.changes("begin; update jobs set x = ?; commit") == ("claim",)


def test_a_correction_decides_alone_for_its_change() -> None:
    book = StatementBook()
    book.learn("update jobs set a = ?", "claim")
    book.learn("update jobs set a = ?", "renew")
    before = book.version
    book.correct("claim", ["skip locked"])
    assert book.version > before
    assert book.changes("update jobs set a = ?") == ("renew",)
    assert book.changes("select ? for update SKIP LOCKED") == ("claim",)


def test_what_a_copy_of_the_book_learns_stays_with_it() -> None:
    book = StatementBook()
    book.learn("update jobs", "claim")
    copied = book.copy()
    copied.learn("update jobs", "release")
    copied.learn("rescue", "release")
    assert copied.changes("update jobs") == ("claim", "release")
    assert book.changes("update jobs") == ("claim",)
    assert book.changes("rescue") == ()


def test_the_write_that_makes_a_change_is_the_earliest_that_was_seen_to() -> None:
    book = StatementBook()
    assert book.place("select claim(?)", "claim") == 1
    book.learn("select claim(?)", "claim", 3)
    book.learn("select claim(?)", "claim", 2)
    book.learn("select claim(?)", "claim", 4)
    book.learn("select claim(?)", "release", 1)
    assert book.place("select claim(?)", "claim") == 2
    assert book.place("select claim(?)", "release") == 1
    copied = book.copy()
    copied.learn("select claim(?)", "claim", 1)
    assert (copied.place("select claim(?)", "claim"), book.place("select claim(?)", "claim")) == (1, 2)
