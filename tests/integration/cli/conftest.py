"""The command line as a user meets it: a process of its own, in an empty folder, with every law it must always keep."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.postgres.cluster import Cluster
from harness.run.starters import write_starter

COMMAND = str(Path(sys.executable).with_name("queueproof"))
EXITS = {0, 1, 2, 3, 4, 130}


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said where."""

    code: int
    out: str
    err: str


def judged(code: int, out: bytes, err: bytes) -> Said:
    """What every end of every command must keep: a known exit code, and no traceback."""
    said = Said(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
    assert code in EXITS, said
    for text in (said.out, said.err):
        assert "Traceback" not in text, said
        assert "Exception ignored" not in text, said
        assert "\x1b" not in text, said
        assert "\x00" not in text, said
    if code in {2, 3}:
        assert said.err.strip(), "it must say why"
    return said


class CommandLine:
    """Starts ``queueproof`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("QUEUEPROOF_", "PG"))}

    def begin(self, *arguments: str | Path) -> "subprocess.Popen[bytes]":
        """Start it and let it run."""
        return subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *arguments: str | Path, within_seconds: float = 60) -> Said:
        """Run it to its end."""
        process = self.begin(*arguments)
        try:
            out, err = process.communicate(timeout=within_seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=20)
            raise AssertionError(f"still running after {within_seconds} s: {err.decode()}") from None
        return judged(process.returncode, out, err)


@pytest.fixture
def queueproof(tmp_path: Path) -> CommandLine:
    """The command, in a folder of the test's own."""
    return CommandLine(tmp_path)


@pytest.fixture
def dsn(cluster: Cluster) -> str:
    """A server that somebody else runs, with a user who may do everything."""
    return cluster.address.url()


MakeSubject = Callable[..., Path]


@pytest.fixture
def make_subject(tmp_path: Path) -> MakeSubject:
    """Write a starter and change it: a file's whole text, or one passage of it for another."""

    def make(
        kind: str = "shell",
        edits: Sequence[tuple[str, str, str]] = (),
        files: dict[str, bytes] | None = None,
    ) -> Path:
        folder = tmp_path / "my-queue"
        shutil.rmtree(folder, ignore_errors=True)
        write_starter(kind, folder)
        for file, old, new in edits:
            text = (folder / file).read_text(encoding="utf-8")
            assert text.count(old) >= 1, (file, old)
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        for file, content in (files or {}).items():
            (folder / file).write_bytes(content)
        return folder

    return make
