"""What can rot silently in the tree: docstrings, names, sleeps, SQL files, and what must not be told of a machine."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("harness", "scenarios", "reference_queue", "reports")
SUBJECTS = ROOT / "harness" / "subjects"
STARTERS = ROOT / "harness" / "run" / "starters"

SLEEPS_ALONE = {
    ("harness/bench/producer.py", "_until"): "a request has a time of its own; there is nothing to wait for",
    ("harness/bench/retention.py", "_pause"): "what is measured is how a rate goes over a stated time",
    ("harness/faults/skewed_clock.py", "skewed_clock_stepped"): "a clock is behind for a stated time",
    ("harness/lab/lab.py", "watch_for"): "a stated time in which something must not happen",
    ("harness/lab/worker.py", "_restart"): "a supervisor's delay",
    ("harness/load/outside.py", "serve"): "the outside world takes its time",
    ("harness/load/outside.py", "_pass"): "the outside world takes its time",
    ("harness/load/producer.py", "_rest"): "an arrival has a time of its own",
    ("harness/load/workers.py", "_restart"): "a supervisor's delay",
    ("harness/run/drill.py", "_hurt"): "an injury lasts a stated time",
    ("harness/sink/sink.py", "_serve"): "the outside world takes its time",
}
"""Durations, not waits: by file and function, with what passes meanwhile."""


@cache
def tracked() -> tuple[Path, ...]:
    """The files that are, or are about to be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this tree is no git checkout")
    return tuple(path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file())


def modules() -> list[Path]:
    return [path for name in (*PACKAGES, "tests") for path in sorted((ROOT / name).rglob("*.py"))]


def told(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_module_says_what_it_is() -> None:
    silent = [
        told(path)
        for path in modules()
        if path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_no_module_is_a_drawer_for_anything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "core", "misc", "shared", "base"}
    assert [told(path) for path in modules() if drawers & set(path.relative_to(ROOT).with_suffix("").parts)] == []


def _sleeps(tree: ast.AST) -> list[tuple[str, int]]:
    """Calls of a sleep that no loop surrounds within its function, as (function, line); ``sleep(0)`` only yields."""
    found: list[tuple[str, int]] = []

    def walk(node: ast.AST, function: str, looped: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                walk(child, child.name, looped=False)
                continue
            sleeps = isinstance(child, ast.Call) and ast.unparse(child.func) in {"time.sleep", "asyncio.sleep", "sleep"}
            if sleeps and not looped and ast.unparse(child).rpartition("(")[2] != "0)":
                found.append((function, child.lineno))
            walk(child, function, looped or isinstance(child, ast.While | ast.For | ast.AsyncFor))

    walk(tree, "", looped=False)
    return found


def test_a_bare_sleep_is_seen() -> None:
    assert _sleeps(ast.parse("async def f():\n    await asyncio.sleep(1)")) == [("f", 2)]
    assert _sleeps(ast.parse("def f():\n  while True:\n    def g(): time.sleep(1)")) == [("g", 3)]
    assert _sleeps(ast.parse("def f():\n  while not done():\n    time.sleep(0.1)\n  asyncio.sleep(0)")) == []


def test_nothing_just_sleeps() -> None:
    """A wait looks at something, in a loop with a deadline; what is truly a duration is listed with its reason."""
    alone = [
        f"{told(path)}:{line} in {function}"
        for name in ("harness", "scenarios", "reports")
        for path in sorted((ROOT / name).rglob("*.py"))
        if SUBJECTS not in path.parents and STARTERS not in path.parents
        for function, line in _sleeps(ast.parse(path.read_text(encoding="utf-8")))
        if (told(path), function) not in SLEEPS_ALONE
    ]
    assert alone == []


def test_every_exception_still_has_its_sleep() -> None:
    for file, function in SLEEPS_ALONE:
        assert function in {name for name, _ in _sleeps(ast.parse((ROOT / file).read_text(encoding="utf-8")))}, file


def _statements(text: str) -> list[str]:
    """The statements of a piece of SQL, by semicolons outside of comments, quotes and dollar quotes."""
    skipped = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1", re.DOTALL)
    return [
        part for part in skipped.sub(lambda m: "" if m[0][:2] in {"--", "/*"} else "x", text).split(";") if part.strip()
    ]


def test_statements_are_told_apart() -> None:
    assert len(_statements("-- a; b\nselect ';' as \"a;b\", $x$ ; $x$ /* ; */;\n")) == 1
    assert len(_statements("select 1; select 2")) == 2


def test_a_file_of_sql_holds_one_statement() -> None:
    several = {
        told(path): len(found)
        for path in tracked()
        if path.suffix == ".sql" and "sql" in path.parent.relative_to(ROOT).parts
        if SUBJECTS not in path.parents and STARTERS not in path.parents
        if len(found := _statements(path.read_text(encoding="utf-8"))) != 1
    }
    assert several == {}


def _hosts_of_registries() -> set[str]:
    """Where this machine's installer fetches from, if it says so."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    said += " ".join(value for name, value in os.environ.items() if "INDEX" in name or name.lower().endswith("_proxy"))
    return {host for url in re.findall(r"https?://[^\s'\"]+", said) if (host := urlsplit(url).hostname)} - {"localhost"}


def test_nothing_committed_tells_of_the_machine_that_built_it() -> None:
    home = str(Path.home())
    wanted = {str(ROOT) + "/", sys.prefix, "--index-url", "--extra-index-url", "--find-links", *_hosts_of_registries()}
    wanted |= {f"{home}/."} if home != "/" else set()
    told_of: list[str] = []
    for path in tracked():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        told_of += [f"{told(path)}: {each}" for each in wanted if each in text]
    assert told_of == []
