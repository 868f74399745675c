"""A schedule told as a spec of the isolation tester."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.explore import spec
from harness.explore.case import Made
from harness.explore.schedule import Kind, Move, read, step
from harness.run.subject_file import load_subject

FOLDER = Path(__file__).parents[2] / "integration" / "explore" / "pasted.toml"
CLAIM = Made(step(1), "claim", "update task set worker = $1 where id = any ($2) and note <> '$1'", ("'w1'", "'{57}'"))
CALL = Made(step(1), "call for job 'job-1'")
EXPIRE = Made(Move(Kind.EXPIRE, 1), "the lease of job 'job-1' ends")


@pytest.fixture
def subject(tmp_path):
    (tmp_path / "pasted.sql").write_text("create table task (id int)")
    (tmp_path / "subject.toml").write_text(FOLDER.read_text())
    return load_subject(tmp_path)


def test_parameters_stand_in_the_text_and_jobs_are_counted_from_one(subject):
    text = spec.write(subject, [CLAIM, CALL, EXPIRE], {"job-1": "57"}, ["task"])
    assert "worker = 'w1' where id = any (string_to_array('1', ',')) and note <> '$1'" in text
    assert "select 'outside: call for job ''job-1''';" in text
    assert "set lease_until = clock_timestamp() - interval '1 millisecond'" in text
    assert text.rstrip().endswith("permutation w1_1 w1_2 operator_3")
    assert 'session "w1"' in text
    assert 'session "operator"' in text


@pytest.mark.parametrize("kind", [Kind.KILL, Kind.SEVER])
def test_a_kill_or_a_lost_reply_is_no_sql(subject, kind):
    with pytest.raises(spec.NotPlainSql, match="no SQL"):
        spec.write(subject, [Made(Move(kind, 1), "")], {"job-1": "1"}, ["task"])


def test_a_parameter_that_cannot_be_read_and_a_brace_are_said(subject):
    with pytest.raises(spec.NotPlainSql, match="binary"):
        spec.write(subject, [replace(CLAIM, parameters=None)], {"job-1": "1"}, ["task"])
    with pytest.raises(spec.NotPlainSql, match="brace"):
        spec.write(subject, [replace(CLAIM, statement="select '}'", parameters=())], {"job-1": "1"}, ["task"])


def test_a_subject_installed_by_a_program_has_no_spec(subject):
    with pytest.raises(spec.NotPlainSql, match="by SQL alone"):
        spec.write(replace(subject, install_command=("make",)), [CLAIM], {"job-1": "1"}, ["task"])


def test_the_schedule_stands_in_the_first_line(subject):
    moves = [Made(move, "") for move in read("w1w2")]
    assert (
        spec.write(subject, moves, {"job-1": "1"}, ["task"])
        .splitlines()[0]
        .endswith("w1w2, written by queueproof explore")
    )
