"""Counts the tests by kind, as pytest collects them: one line per folder of ``tests``."""

import collections
import subprocess
import sys


def main() -> int:
    """Print the counts; fails when nothing was collected."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header"],
        capture_output=True,
        text=True,
        check=False,
    )
    kinds = collections.Counter(
        line.split("/")[1] for line in collected.stdout.splitlines() if line.startswith("tests/") and "::" in line
    )
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    print(f"{sum(kinds.values()):6} tests in all")
    return 0 if kinds else 1


if __name__ == "__main__":
    sys.exit(main())
