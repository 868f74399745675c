"""What ``init`` writes: valid subjects, complete, over nobody's files."""

import pytest

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.run.starters import KINDS, write_starter
from harness.run.subject_file import load_subject


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_is_a_valid_subject(kind, tmp_path):
    written = write_starter(kind, tmp_path / "deep" / "queue")
    subject = load_subject(tmp_path / "deep" / "queue")
    assert subject.folder == tmp_path / "deep" / "queue"
    assert {path.name for path in written} >= {"subject.toml", "schema.sql"}
    assert {path.name for path in written} == {path.name for path in subject.folder.iterdir()}
    assert (subject.pasted is not None) == (kind == "sql")


def test_it_overwrites_nothing_and_names_every_file_in_the_way(tmp_path):
    (tmp_path / "subject.toml").write_text("mine")
    (tmp_path / "schema.sql").write_text("mine")
    with pytest.raises(BadInput) as caught:
        write_starter("shell", tmp_path)
    assert [line.split(":")[0] for line in caught.value.mistakes] == [
        str(tmp_path / "schema.sql"),
        str(tmp_path / "subject.toml"),
    ]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "subject.toml": "mine",
        "schema.sql": "mine",
    }


def test_it_writes_beside_what_is_not_in_the_way(tmp_path):
    (tmp_path / "README").write_text("mine")
    write_starter("python", tmp_path)
    assert load_subject(tmp_path).name == "my-queue"


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file"):
        write_starter("sql", tmp_path / "file")
    with pytest.raises(EnvironmentFailed, match="cannot write"):
        write_starter("sql", tmp_path / "file" / "below")
    with pytest.raises(BadInput, match="'ruby' is not one of sql, python, shell"):
        write_starter("ruby", tmp_path)
