"""Plays the whole gate many times in a row: every verdict must be a pass, and no process, port or folder may be left.

Run as ``python tests/soak.py TIMES``; prints a line per gate, exits 1 at the first that is not clean.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

GATE = [str(Path(sys.executable).with_name("queueproof")), "gate", "--json"]
LEFTOVER_SECONDS = 6.0


def listening(pids: set[int]) -> list[str]:
    """Listening sockets of these processes."""
    return [
        f"port {connection.laddr.port} of process {connection.pid}"
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.pid in pids
    ]


def descendants(marker: str) -> list[psutil.Process]:
    """Living processes whose environment carries this run's marker: whatever the gate started, and what that started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("QUEUEPROOF_SOAK") == marker and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def one_gate(number: int, folder: Path) -> bool:
    """Play one gate; true when it held everywhere and left nothing."""
    marker = f"{folder.name}-{number}"
    began = time.monotonic()
    done = subprocess.run(
        [*GATE, "--runs", str(folder), "--seed", str(number)],
        env={**os.environ, "QUEUEPROOF_SOAK": marker, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    verdicts: Counter[str] = Counter()
    unclean: list[str] = []
    try:
        plays = json.loads(done.stdout)["plays"]
    except (json.JSONDecodeError, KeyError):
        unclean.append(f"no document: {done.stderr.strip()[-500:]}")
        plays = []
    for play in plays:
        verdicts[play["verdict"]] += 1
        if play["verdict"] != "pass":
            unclean.append(f"{play['scenario']}: {play['verdict']}: {play['reason']}")
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while (left := descendants(marker)) and time.monotonic() < deadline:
        time.sleep(0.1)
    unclean += [f"process left: {process.pid} {' '.join(process.cmdline())[:100]}" for process in left]
    unclean += listening({process.pid for process in left})
    unclean += [f"left in the temporary folder: {path.name}" for path in (folder / "tmp").iterdir()]
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"gate {number:3}: exit {done.returncode}, {told}, {seconds:.1f} s", *unclean, sep="\n    ", flush=True)
    return done.returncode == 0 and not unclean


def main() -> int:
    """Play as many gates as asked for."""
    times = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="queueproof-soak-", dir=".") as name:
        folder = Path(name).absolute()
        (folder / "tmp").mkdir()
        clean = [one_gate(number, folder) for number in range(1, times + 1)]
    print(f"{sum(clean)} of {times} gates held everywhere and left nothing")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
