"""The process table, as far as workers need it: who is in a process group and in what state. Linux /proc, else ps."""

import os
import subprocess
from pathlib import Path

GONE = "gone"
_WORDS = {"T": "stopped", "t": "stopped", "Z": "zombie", "X": GONE, "x": GONE}


def group(pgid: int) -> dict[int, str]:
    """The members of a process group and their states: "running", "stopped" or "zombie"."""
    if not Path("/proc/self/stat").exists():
        return _group_from_ps(pgid)
    members = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208  hot loop: a Path per process would cost more than the read
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  see above
                letter, _, group_id = file.read().rpartition(b")")[2].split()[:3]
        except OSError:  # it ended while we looked
            continue
        if int(group_id) == pgid:
            members[int(entry)] = _WORDS.get(letter.decode(), "running")
    return {pid: state for pid, state in members.items() if state != GONE}


def _group_from_ps(pgid: int) -> dict[int, str]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True, timeout=5
    ).stdout
    members = {}
    for line in listing.splitlines():
        pid, group_id, state = line.split()
        if int(group_id) == pgid:
            members[int(pid)] = _WORDS.get(state[0], "running")
    return members
