"""Plays the gate on every PostgreSQL that can be had here, and compares the verdicts scenario by scenario.

Run as ``python tests/matrix.py [gate options]``. PostgreSQL 15 comes from the system's packages, the others from wheels, and a
container where a Docker engine and an image are. Exits 1 when two servers disagree or a gate did not hold.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

QUEUEPROOF = str(Path(sys.executable).with_name("queueproof"))
LOCAL_15 = Path("/usr/lib/postgresql/15/bin")
IMAGE = os.environ.get("QUEUEPROOF_IMAGE", "")


def servers() -> dict[str, list[str]]:
    """What there is, and how to ask for it."""
    found: dict[str, list[str]] = {}
    if (LOCAL_15 / "postgres").exists():
        found["15"] = ["--server", f"local:{LOCAL_15}"]
    found |= {major: ["--pg", major] for major in ("16", "17", "18")}
    if IMAGE and shutil.which("docker"):
        found[f"docker {IMAGE}"] = ["--server", f"docker:{IMAGE}"]
    return found


def verdicts(options: list[str], more: list[str], folder: str) -> dict[str, str]:
    """Every scenario's verdict on one server."""
    done = subprocess.run(
        [QUEUEPROOF, "gate", "--json", "--keep-going", "--seed", "1", "--runs", folder, *options, *more],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return {play["scenario"]: play["verdict"] for play in json.loads(done.stdout)["plays"]}
    except (json.JSONDecodeError, KeyError):
        print(f"no document with {' '.join(options)}: {done.stderr.strip()[-800:]}")
        return {}


def main() -> int:
    """Play them all and print one table."""
    table: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="queueproof-matrix-") as folder:
        for name, options in servers().items():
            table[name] = verdicts(options, sys.argv[1:], folder)
            held = sum(verdict in {"pass", "not applicable"} for verdict in table[name].values())
            print(f"PostgreSQL {name}: {held} of {len(table[name])} held", flush=True)
    scenarios = sorted({scenario for column in table.values() for scenario in column})
    different = [s for s in scenarios if len({column.get(s, "not played") for column in table.values()}) > 1]
    for scenario in different:
        told = ", ".join(f"{name}: {column.get(scenario, 'not played')}" for name, column in table.items())
        print(f"DIFFERENT {scenario}: {told}")
    all_held = all(column and set(column.values()) <= {"pass", "not applicable"} for column in table.values())
    print(f"{len(scenarios)} scenarios on {len(table)} servers: {len(different)} differ")
    return 0 if all_held and not different else 1


if __name__ == "__main__":
    sys.exit(main())
