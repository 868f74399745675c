"""The run's folder: a disk that is full, a history that is damaged, keys that no report may stumble over."""

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.conftest import CommandLine, MakeSubject

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 64 kB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@as_root
def test_a_full_disk_is_trouble_of_the_environment(queueproof: CommandLine, small_disk: Path) -> None:
    said = queueproof("gate", "--only", "late", "--only", "killed", "--runs", small_disk)
    assert said.code == 3, said
    assert "No space left on device" in said.err
    assert str(small_disk) in said.err
    assert said.out == ""


@as_root
def test_a_disk_with_no_room_for_anything(queueproof: CommandLine, small_disk: Path) -> None:
    (small_disk / "full").write_bytes(b"x" * 65536)
    said = queueproof("probe", "--runs", small_disk)
    assert said.code == 3, said
    assert "--runs" in said.err


@pytest.mark.parametrize("runs", ["/proc", "file", "/dev/null"])
def test_runs_that_cannot_be_kept(queueproof: CommandLine, runs: str) -> None:
    (queueproof.folder / "file").write_text("")
    said = queueproof("probe", "--runs", runs)
    assert said.code == 3
    assert "choose another with --runs" in said.err


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is over."""
    command = CommandLine(tmp_path_factory.mktemp("recorded"))
    said = command("gate", "--only", "late_complete", "--json")
    assert said.code == 0, said
    assert json.loads(said.out)["verdict"] == "pass"
    return (command.folder / ".queueproof" / "runs" / "latest").resolve()


@pytest.fixture
def damaged(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(recorded, tmp_path / "damaged"))


def test_a_stored_run_has_its_verdict_again(queueproof: CommandLine, recorded: Path) -> None:
    said = queueproof("check", recorded, "--json")
    assert said.code == 0
    assert json.loads(said.out)["verdict"] == "pass"
    for face in ("html", "json", "junit", "markdown", "text"):
        assert queueproof("report", recorded, "--as", face).code == 0
    assert json.loads(queueproof("report", recorded, "--json").out)["verdict"] == "pass"


def test_a_history_that_was_cut_off_is_never_a_pass(queueproof: CommandLine, damaged: Path) -> None:
    history = damaged / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-20])
    said = queueproof("check", damaged, "--json")
    assert said.code == 4
    assert json.loads(said.out)["verdict"] == "inconclusive"
    assert "the last line has no end" in said.err


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "holds no play"),
        (b"\n", "line 1"),
        (b"\xff\x00\xfe\n" * 3, "line 1"),
        (b"{}\n", "line 1"),
        (b"[1, 2]\n", "line 1"),
        (b'{"n": 1', "holds no play"),
    ],
)
def test_a_history_that_is_none(queueproof: CommandLine, damaged: Path, content: bytes, named: str) -> None:
    (damaged / "history.jsonl").write_bytes(content)
    for more in ([], ["--json"]):
        said = queueproof("check", damaged, *more)
        assert said.code == 2
        assert named in said.err
        assert said.out == ""


def test_a_history_with_a_hole(queueproof: CommandLine, damaged: Path) -> None:
    history = damaged / "history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(lines[:5] + lines[7:]))
    said = queueproof("check", damaged)
    assert said.code == 2
    assert "line 6: entry 8 stands where entry 6 belongs" in said.err


def test_a_document_that_is_none(queueproof: CommandLine, damaged: Path) -> None:
    (damaged / "report.json").write_bytes(b"{")
    assert queueproof("report", damaged).code == 2
    (damaged / "report.json").unlink()
    assert "report.json" in queueproof("report", damaged).err


@pytest.mark.parametrize(("sign", "shown"), [("%3c%73", "<script>alert"), ("%1b", "\x1b[31m"), ("%27%73%20", "it's")])
def test_awkward_keys_stay_text_in_every_face(
    queueproof: CommandLine, make_subject: MakeSubject, sign: str, shown: str
) -> None:
    twice = ("worker.sh", "  case $(call) in", f'  case "$key" in *{sign}*) call > /dev/null;; esac\n  case $(call) in')
    said = queueproof("gate", make_subject(edits=[twice]), "--only", "job_keys_are_awkward", "--json")
    assert said.code == 1, said
    findings = json.loads(said.out)["plays"][0]["findings"]
    assert all(shown in finding["key"] for finding in findings)
    folder = queueproof.folder / ".queueproof" / "runs" / "latest"
    ET.parse(folder / "junit.xml")
    for name in ("report.html", "report.md", "report.txt", "junit.xml"):
        text = (folder / name).read_text(encoding="utf-8")
        assert not [sign for sign in text if ord(sign) < 32 and sign not in "\n\t"], name
        assert name in {"report.txt", "report.md"} or "<script>alert" not in text
    assert queueproof("report", folder, "--as", "text").code == 0
    assert queueproof("check", folder).code == 1
