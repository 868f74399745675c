"""Reading a history file back: where it is bad is said exactly, and what SIGKILL leaves behind is tolerated."""

from pathlib import Path

import pytest

from harness.contracts.problem import BadInput
from harness.history.events import Ended, Entry, Saw, Stalled
from harness.history.made_up import History, write
from harness.history.reading import read_history
from harness.history.recorder import Recorder


def stored(tmp_path: Path) -> Path:
    history = History()
    history.start(1)
    history.enqueue("a'%<script>\x01ü")
    history.run(1, "a'%<script>\x01ü")
    history.end()
    write(tmp_path / "history.jsonl", history.entries)
    return tmp_path / "history.jsonl"


def test_what_the_recorder_wrote_is_read_back(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        written = [
            recorder.write("one", Saw("a", "b")),
            recorder.write("two", Stalled(12.5)),
            recorder.write("one", Ended()),
        ]
    assert list(read_history(tmp_path / "history.jsonl")) == written


def test_a_last_line_without_end_is_left_out_and_reported(tmp_path: Path) -> None:
    path = stored(tmp_path)
    whole = list(read_history(path))
    path.write_bytes(path.read_bytes()[:-9])
    told: list[str] = []
    assert list(read_history(path, truncated=told.append)) == whole[:-1]
    assert len(told) == 1
    assert f"{path}, line {len(whole)}:" in told[0]


def test_one_truncated_line_alone_is_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"n":1,"t"')
    told: list[str] = []
    assert list(read_history(path, truncated=told.append)) == []
    assert "line 1:" in told[0]


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.touch()
    assert list(read_history(path)) == []


@pytest.mark.parametrize(
    "bad", [b"nonsense", b'{"n":3,"t":0,"play":"p","what":{"kind":"no such kind"}}', b"\xff\xfe", b"null"]
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, bad: bytes) -> None:
    path = stored(tmp_path)
    lines = path.read_bytes().splitlines()
    lines[2] = bad
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(BadInput) as caught:
        list(read_history(path))
    assert f"{path}, line 3:" in str(caught.value)


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    path = stored(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[5:]))
    with pytest.raises(BadInput, match=r"line 5: entry 6 stands where entry 5 belongs"):
        list(read_history(path))


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        list(read_history(tmp_path / "absent.jsonl"))


def test_more_than_one_piece_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    entries = [Entry(n, n, "p", Saw("x" * 5000, "y")) for n in range(1, 700)]
    write(path, entries)
    assert list(read_history(path)) == entries
