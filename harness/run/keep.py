"""A run's folder: where its history, reports and logs are kept, and the link to the latest."""

import contextlib
import os
import secrets
import time
from pathlib import Path

from harness.contracts.problem import BadInput, EnvironmentFailed

HISTORY = "history.jsonl"
DOCUMENT = "report.json"
LATEST = "latest"


def runs_folder(root: Path) -> Path:
    """The folder that holds all runs."""
    return root / ".queueproof" / "runs"


def new_run(root: Path, seed: int) -> Path:
    """Make ``<root>/.queueproof/runs/<time>-<seed>/`` and point ``latest`` to it. Raises EnvironmentFailed."""
    runs = runs_folder(root)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = runs / f"{stamp}-{seed}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            try:
                folder.mkdir()
                break
            except FileExistsError:  # a run of this second and seed
                number += 1
                folder = runs / f"{stamp}-{seed}-{number}"
        link = runs / f".{LATEST}-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        link.replace(runs / LATEST)
    except OSError as error:
        raise EnvironmentFailed(
            f"cannot make a folder for this run in {runs}: {error.strerror}; free some space or choose another with --runs"
        ) from error
    return folder


def write(folder: Path, name: str, content: bytes) -> Path:
    """Write one file of a run, whole or not at all. Raises EnvironmentFailed."""
    path = folder / name
    part = folder / f".{name}.part"
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise EnvironmentFailed(
            f"cannot write {path}: {error.strerror}; free some space or choose another folder with --runs"
        ) from error
    return path


def find_run(named: Path) -> Path:
    """The folder of a run: given itself, or any file in it. Raises BadInput when it holds neither history nor report."""
    folder = named if named.is_dir() else named.parent
    if not named.exists() or not any((folder / name).is_file() for name in (HISTORY, DOCUMENT)):
        raise BadInput(f"RUN: {str(named)!r} is no run: there is no {HISTORY} or {DOCUMENT}; look in .queueproof/runs/")
    return folder.resolve()


def new_seed() -> int:
    """A seed that a person can type."""
    return secrets.randbelow(1_000_000)
