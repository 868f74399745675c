"""Detection: every broken queue against the scenarios that must catch it, and every sound one against all of them.

    python -m harness.bench.battery [--repeat 5] [--whole] [--sound] [NAME ...]

Each queue is a gate of its own, as a user would run it, two at a time. A broken queue is caught in a round when a scenario of
its ``by`` fails, and rightly so when the invariant that its ``subject.toml`` names is among the findings. Exit codes: 0 all
caught, nine of ten or more by the named invariant, and no false alarm; 1 not so; 3 a gate could not be run.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.contracts.subject import Broken
from harness.run.subject_file import load_subject

SUBJECTS = Path(__file__).parent.parent / "subjects"
AT_ONCE = 2
SIDE_BY_SIDE = 3
GATE_SECONDS = 300.0  # for each repetition; a gate that takes longer hangs
NAMED_ENOUGH = 0.9
GATE = "from harness.cli import main; main()"
NAMED, OTHER, MISSED, UNCLEAR = "named", "other", "missed", "unclear"


@dataclass(frozen=True)
class Round:
    """One play of one scenario against one queue."""

    scenario: str
    repeat: int
    verdict: str
    reason: str
    invariants: tuple[str, ...]

    def outcome(self, broken: Broken) -> str:
        """How it was caught: by the named invariant, by another one, or not."""
        if broken.caught_by in self.invariants:
            return NAMED
        if self.invariants:
            return OTHER
        return MISSED if self.verdict == "pass" else UNCLEAR


@dataclass(frozen=True)
class Tried:
    """One queue and all its rounds. ``broken`` is None for a sound one; ``trouble`` says why there are no rounds."""

    name: str
    broken: Broken | None
    rounds: tuple[Round, ...]
    seconds: float
    trouble: str = ""
    outcomes: tuple[str, ...] = field(default=())  # per repetition, the best of its scenarios

    @property
    def caught(self) -> bool:
        """Whether every repetition was."""
        return bool(self.outcomes) and all(outcome in {NAMED, OTHER} for outcome in self.outcomes)

    @property
    def quiet(self) -> bool:
        """Of a sound queue: whether every scenario that applies passed."""
        return bool(self.rounds) and all(each.verdict in {"pass", "not applicable"} for each in self.rounds)


def run(names: Sequence[str] = (), *, repeat: int = 1, whole: bool = False) -> dict[str, Any]:
    """Try the broken queues, all or the named ones. ``whole`` plays every scenario against each: the matrix."""
    began = time.monotonic()
    tried = _try_all(_folders("broken", names), repeat, whole=whole)
    return _told(tried, time.monotonic() - began, matrix=whole)


def run_sound(names: Sequence[str] = (), *, repeat: int = 1) -> dict[str, Any]:
    """Play every scenario against the sound queues."""
    began = time.monotonic()
    tried = _try_all(_folders("sound", names), repeat, whole=True)
    return {
        "queues": len(tried),
        "false_alarms": {
            each.name: sorted({f"{r.scenario}: {r.reason}" for r in each.rounds if r.verdict not in _FINE})
            or [each.trouble]
            for each in tried
            if not each.quiet
        },
        "plays": sum(len(each.rounds) for each in tried),
        "seconds": round(time.monotonic() - began, 1),
    }


_FINE = frozenset({"pass", "not applicable"})


def _folders(kind: str, names: Sequence[str]) -> list[Path]:
    there = sorted(folder for folder in (SUBJECTS / kind).iterdir() if (folder / "subject.toml").is_file())
    if not names:
        return there
    strange = sorted(set(names) - {folder.name for folder in there})
    if strange:
        raise BadInput(
            *(f"{name!r}: no {kind} queue has this name; they are the folders of {SUBJECTS / kind}" for name in strange)
        )
    return [folder for folder in there if folder.name in names]


def _try_all(folders: Sequence[Path], repeat: int, *, whole: bool) -> list[Tried]:
    gates = _Gates()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tries = [pool.submit(_try, folder, repeat, gates, whole=whole) for folder in folders]
        try:
            return [each.result() for each in tries]
        except BaseException:
            for each in tries:
                each.cancel()
            gates.end()
            raise


class _Gates:
    """The gates that run now, so that an interrupted battery ends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def play(self, arguments: Sequence[str], within_seconds: float) -> tuple[bytes, str]:
        """Run one gate; what it printed, and the end of what it told."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", GATE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with self._lock:
            self._running.add(process)
        try:
            out, err = process.communicate(timeout=within_seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.communicate()
            return b"", f"the gate did not end within {within_seconds:g} s"
        finally:
            with self._lock:
                self._running.discard(process)
        return out, err.decode("utf-8", "replace")[-500:]

    def end(self) -> None:
        with self._lock:
            for process in self._running:
                process.terminate()


def _try(folder: Path, repeat: int, gates: _Gates, *, whole: bool) -> Tried:
    began = time.monotonic()
    broken = load_subject(folder).broken
    wanted = () if whole or broken is None else broken.by
    with tempfile.TemporaryDirectory(prefix="queueproof-battery-") as runs:
        arguments = ["gate", str(folder), "--json", "--keep-going", "--runs", runs]
        arguments += ["--repeat", str(repeat), "--side-by-side", str(SIDE_BY_SIDE)]
        for scenario in wanted:
            arguments += ["--only", scenario]
        out, told = gates.play(arguments, GATE_SECONDS * repeat)
    try:
        plays = json.loads(out)["plays"]
    except (ValueError, KeyError):
        return Tried(folder.name, broken, (), time.monotonic() - began, told.strip() or "the gate printed no document")
    # --only takes parts of names: leave out what came in beside the wanted ones
    rounds = tuple(_round(play) for play in plays if not wanted or play["scenario"] in wanted)
    outcomes = tuple(_outcomes(rounds, broken, repeat)) if broken is not None else ()
    return Tried(folder.name, broken, rounds, time.monotonic() - began, outcomes=outcomes)


def _round(play: Mapping[str, Any]) -> Round:
    found = tuple(sorted({finding["invariant"] for finding in play.get("findings", ())}))
    return Round(play["scenario"], play.get("repeat", 1), play["verdict"], play.get("reason", ""), found)


def _outcomes(rounds: Iterable[Round], broken: Broken, repeat: int) -> Iterable[str]:
    """Per repetition the best that any of the scenarios that must catch it came to."""
    for number in range(1, repeat + 1):
        found = {each.outcome(broken) for each in rounds if each.repeat == number and each.scenario in broken.by}
        yield next((outcome for outcome in (NAMED, OTHER, UNCLEAR) if outcome in found), MISSED)


def _told(tried: Sequence[Tried], seconds: float, *, matrix: bool) -> dict[str, Any]:
    outcomes = [outcome for each in tried for outcome in each.outcomes]
    classes = sorted({each.broken.letter for each in tried if each.broken is not None})
    result: dict[str, Any] = {
        "queues": len(tried),
        "classes": "".join(classes),
        "rounds": len(outcomes),
        "caught": sum(each.caught for each in tried),
        "by_the_named_invariant": round(outcomes.count(NAMED) / len(outcomes), 3) if outcomes else 0.0,
        "by_another": outcomes.count(OTHER),
        "missed": {each.name: _reproduce(each) for each in tried if not each.caught},
        "could_not_run": {each.name: each.trouble for each in tried if each.trouble},
        "seconds": round(seconds, 1),
        "each": {
            each.name: {
                "class": each.broken.letter if each.broken else "",
                "must_be_caught_by": each.broken.caught_by if each.broken else "",
                "outcomes": list(each.outcomes),
                "found": sorted({invariant for r in each.rounds for invariant in r.invariants}),
                "seconds": round(each.seconds, 1),
            }
            for each in tried
        },
    }
    if matrix:
        result["matrix"] = {
            each.name: {
                r.scenario: (r.outcome(each.broken) if r.verdict != "not applicable" else "") for r in each.rounds
            }
            for each in tried
            if each.broken is not None
        }
    return result


def _reproduce(each: Tried) -> str:
    if each.broken is None:
        return each.trouble
    words = ["queueproof", "gate", f"harness/subjects/broken/{each.name}", "--keep-going"]
    for scenario in each.broken.by:
        words += ["--only", scenario]
    return shlex.join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m harness.bench.battery", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these queues")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="play each scenario this often")
    parser.add_argument("--whole", action="store_true", help="every scenario against every broken queue: the matrix")
    parser.add_argument("--sound", action="store_true", help="the sound queues, against every scenario")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = parser.parse_args(arguments)
    try:
        if given.sound:
            result = run_sound(given.names, repeat=given.repeat)
        else:
            result = run(given.names, repeat=given.repeat, whole=given.whole)
    except (BadInput, EnvironmentFailed) as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; every gate has been told to end\n")
        return 130
    sys.stdout.write(f"{json.dumps(result, indent=2) if given.json else as_text(result)}\n")
    if result.get("could_not_run"):
        return 3
    if given.sound:
        return 1 if result["false_alarms"] else 0
    enough = result["by_the_named_invariant"] >= NAMED_ENOUGH
    return 0 if enough and result["caught"] == result["queues"] else 1


def as_text(result: Mapping[str, Any]) -> str:
    """A line per queue, the matrix if there is one, and the sum."""
    lines: list[str] = []
    for name, each in result.get("each", {}).items():
        outcomes = " ".join(each["outcomes"]) or "not run"
        lines.append(f"{each['class']}  {name:42} {outcomes:34} {each['must_be_caught_by']}")
    for name, cells in result.get("matrix", {}).items():
        shown = [f"{scenario}={outcome}" for scenario, outcome in cells.items() if outcome in {NAMED, OTHER}]
        lines.append(f"   {name}: {', '.join(shown) or 'nothing caught it'}")
    for name, alarms in result.get("false_alarms", {}).items():
        lines += [f"false alarm  {name}: {alarm}" for alarm in alarms]
    for name, line in result.get("missed", {}).items():
        lines.append(f"missed  {name}; play it again: {line}")
    for name, trouble in result.get("could_not_run", {}).items():
        lines.append(f"could not run  {name}: {trouble}")
    if "each" in result:
        lines.append(
            f"{result['caught']} of {result['queues']} broken queues caught in every one of {result['rounds']} rounds,"
            f" {result['by_the_named_invariant']:.1%} by the invariant named for them, classes {result['classes']},"
            f" in {result['seconds']:g} s"
        )
    else:
        quiet = result["queues"] - len(result["false_alarms"])
        lines.append(
            f"{quiet} of {result['queues']} sound queues stay green in {result['plays']} plays, in {result['seconds']:g} s"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
