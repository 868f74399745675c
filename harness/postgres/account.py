"""The operating system's user that a server runs as: ourselves, or, since PostgreSQL refuses root, somebody humble."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from harness.contracts.problem import EnvironmentFailed

CANDIDATES = ("postgres", "nobody")
MADE_BY_US = "queueproof"
COMMAND_SECONDS = 60.0


class Identity(TypedDict, total=False):
    """The arguments of Popen that change the user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """Whom to run as; ``uid`` is None when that is ourselves."""

    uid: int | None
    gid: int | None
    name: str

    @property
    def identity(self) -> Identity:
        """For Popen: it changes the user between fork and exec, safely beside threads."""
        if self.uid is None or self.gid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def run(self, command: Sequence[str | Path]) -> "subprocess.CompletedProcess[str]":
        """Run a short command as this user. OSError when the user cannot execute it."""
        return subprocess.run(
            [str(word) for word in command],
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            start_new_session=True,  # a Ctrl-C is ours to handle
            **self.identity,
        )

    def may_write(self, folder: Path) -> bool:
        """Whether this user can enter the folder, through all its parents, and write there."""
        return self.run(["test", "-w", folder / "."]).returncode == 0


def server_account() -> Account:
    """Ourselves, unless we are root."""
    if os.geteuid() != 0:
        return Account(None, None, f"number {os.geteuid()}")
    for name in (*CANDIDATES, MADE_BY_US):
        found = _find(name)
        if found is not None:
            return found
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", MADE_BY_US]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailed(
            "PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as; "
            f"'{' '.join(command)}' failed too: run queueproof as an ordinary user"
        ) from error
    made = _find(MADE_BY_US)
    if made is None:
        raise EnvironmentFailed(f"the user {MADE_BY_US} was made but cannot be found; run as an ordinary user")
    return made


def _find(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid, name) if entry.pw_uid != 0 else None
