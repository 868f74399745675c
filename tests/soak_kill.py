"""Kills the harness (SIGKILL) at random moments of gates and drills: no process, port or folder may stay, and the next run is clean.

Run as ``python tests/soak_kill.py TIMES [SEED]``; prints the seed and a line per kill, exits 1 when anything was left.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from soak import descendants, listening

QUEUEPROOF = str(Path(sys.executable).with_name("queueproof"))
VICTIMS = (["gate"], ["drill", "server_restarted_fast", "worker_paused", "sink_down"], ["drill", "--random", "1"])
SOONEST_SECONDS, LATEST_SECONDS = 0.3, 14.0
LEFTOVER_SECONDS = 10.0


def one_kill(number: int, dice: random.Random, folder: Path) -> bool:
    """Start a run, kill it at some moment, and look for what is left; true when nothing is."""
    marker = f"{folder.name}-{number}"
    command = [QUEUEPROOF, *dice.choice(VICTIMS), "--runs", str(folder)]
    moment_seconds = dice.uniform(SOONEST_SECONDS, LATEST_SECONDS)
    harness = subprocess.Popen(
        command,
        env={**os.environ, "QUEUEPROOF_SOAK": marker, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        harness.wait(moment_seconds)
    except subprocess.TimeoutExpired:
        harness.send_signal(signal.SIGKILL)
    code = harness.wait()
    began = time.monotonic()
    while (left := descendants(marker)) and time.monotonic() - began < LEFTOVER_SECONDS:
        time.sleep(0.05)
    gone_seconds = time.monotonic() - began
    unclean = [f"process left: {process.pid} {' '.join(process.cmdline())[:100]}" for process in left]
    unclean += listening({process.pid for process in left})
    unclean += [f"left in the temporary folder: {path.name}" for path in (folder / "tmp").iterdir()]
    told = f"killed after {moment_seconds:.2f} s" if code == -signal.SIGKILL else f"had ended with {code}"
    print(
        f"kill {number:3}: {' '.join(command[1:-2])}, {told}, all gone {gone_seconds:.1f} s later",
        *unclean,
        sep="\n    ",
        flush=True,
    )
    return not unclean


def main() -> int:
    """Kill as often as asked for, then play one gate to its end."""
    times = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1_000_000)
    print(f"seed {seed}")
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="queueproof-kill-", dir=".") as name:
        folder = Path(name).absolute()
        (folder / "tmp").mkdir()
        clean = [one_kill(number, dice, folder) for number in range(1, times + 1)]
        after = subprocess.run([QUEUEPROOF, "gate", "--runs", str(folder)], capture_output=True, text=True, check=False)
    print(f"{sum(clean)} of {times} kills left nothing; the gate afterwards ended with {after.returncode}")
    if after.returncode != 0:
        print(after.stdout[-2000:])
    return 0 if all(clean) and after.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
