"""The SQL is files, one statement each, and overlays replace single ones."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from reference_queue.statements import MissingStatement, Statements, schema

SQL = Path(str(resources.files("reference_queue"))) / "sql"
FILES = sorted(SQL.rglob("*.sql"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SQL)))
def test_each_file_is_one_statement(file: Path) -> None:
    code = "\n".join(line.split("--")[0] for line in file.read_text().splitlines())
    assert code.rstrip().endswith(";")
    if "$$" not in code:
        assert code.count(";") == 1


def test_the_batch_is_written_into_the_text() -> None:
    statements = Statements()
    assert "limit 7" in statements.text("claim", 7)
    assert "limit 7" in statements.text("takeover", 7)
    assert "limit 1\n" in statements.text("claim", 1)


def test_the_first_folder_that_has_a_file_wins(tmp_path: Path) -> None:
    above, below = tmp_path / "above", tmp_path / "below"
    (above / "sql").mkdir(parents=True)
    below.mkdir()
    (above / "sql" / "complete.sql").write_text("select 'above';")
    (below / "complete.sql").write_text("select 'below';")
    (below / "fail.sql").write_text("select 'fail below';")
    statements = Statements.from_environment({"REFERENCE_QUEUE_SQL": f"{above}:{below}"})
    assert statements.text("complete") == "select 'above';"
    assert statements.text("fail") == "select 'fail below';"
    assert "queue_job" in statements.text("claim")


def test_a_missing_statement_is_told() -> None:
    with pytest.raises(MissingStatement, match=r"nothing\.sql"):
        Statements().text("nothing")


def test_the_subject_installs_the_whole_schema_in_order() -> None:
    subject = tomllib.loads((SQL.parent / "subject.toml").read_text())["subject"]
    assert subject["install"]["sql"] == [f"sql/schema/{name}" for name, _ in schema()]
