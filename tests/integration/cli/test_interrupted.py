"""Ctrl-C, SIGTERM and SIGKILL at any moment: nothing that was started outlives it, and nothing stays behind."""

import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.postgres.address import Address
from tests.integration.cli.conftest import PASSWORD, CommandLine, MakeSubject, judged, left_on, things_in

MARK = "QUEUEPROOF_TESTED_BY"
GATE = ("gate", "--only", "killed", "--only", "paused", "--side-by-side", "3")
AFTER_DEATH_SECONDS = 5.0
AFTER_INTERRUPT_SECONDS = 25.0


@pytest.fixture
def traced(queueproof: CommandLine) -> Iterator[CommandLine]:
    """A command line whose every descendant, and every temporary file, can be told."""
    with tempfile.TemporaryDirectory(prefix="interrupted-") as temporary:
        Path(temporary).chmod(0o1777)  # the server's own user must be able to enter
        queueproof.env |= {MARK: str(queueproof.folder), "TMPDIR": temporary}
        yield queueproof
        for process in descendants(queueproof):
            process.kill()


def descendants(command: CommandLine) -> list[psutil.Process]:
    """Living processes that it started, or that those started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == command.env[MARK]:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def begun(command: CommandLine, *more: str | Path, after_seconds: float) -> "subprocess.Popen[bytes]":
    """A gate that has begun to work, so many seconds ago; it may even be over."""
    process = command.begin(*GATE, *more)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert b"starting PostgreSQL" in first
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_seconds)
    return process


def left_nothing(command: CommandLine, within_seconds: float) -> None:
    deadline = time.monotonic() + within_seconds
    while left := descendants(command):
        assert time.monotonic() < deadline, [" ".join(process.cmdline())[:200] for process in left]
    while left_files := sorted(path.name for path in Path(command.env["TMPDIR"]).iterdir()):
        assert time.monotonic() < deadline, left_files


def interrupted(command: CommandLine, number: int, *more: str | Path, after_seconds: float) -> None:
    process = begun(command, *more, after_seconds=after_seconds)
    over = process.poll() is not None
    process.send_signal(number)
    out, err = process.communicate(timeout=AFTER_INTERRUPT_SECONDS)
    if b"reports are in" in err:
        over = True  # it has come to its end in the same moment
    said = judged(0 if over and process.returncode < 0 else process.returncode, out, err)
    if not over:
        assert said.code == 130, said
        assert said.out == ""
        assert said.err.splitlines()[-1] == "interrupted; everything that was started has been ended"
    left_nothing(command, within_seconds=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_leaves_nothing(traced: CommandLine, number: int) -> None:
    interrupted(traced, number, after_seconds=2.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_an_interrupt_at_a_random_moment_leaves_nothing(traced: CommandLine, seed: int) -> None:
    chosen = random.Random(seed)
    interrupted(traced, chosen.choice([signal.SIGINT, signal.SIGTERM]), after_seconds=chosen.uniform(0, 9))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_an_interrupt_leaves_nothing_in_somebodys_database(
    traced: CommandLine, make_subject: MakeSubject, host: Address, own: Address, seed: int
) -> None:
    chosen = random.Random(seed)
    address = own if seed % 2 else host.as_user("maker", PASSWORD)
    folder = make_subject()
    interrupted(traced, signal.SIGINT, folder, "--server", address.url(), after_seconds=chosen.uniform(0, 9))
    assert things_in(own) == []
    assert left_on(host) == []


def killed(command: CommandLine, *more: str | Path, after_seconds: float) -> None:
    process = begun(command, *more, after_seconds=after_seconds)
    process.kill()
    process.communicate(timeout=10)
    left_nothing(command, within_seconds=AFTER_DEATH_SECONDS)


@pytest.mark.parametrize("after_seconds", [0.2, 3.0])
def test_after_our_own_death_nothing_lives_for_long(traced: CommandLine, after_seconds: float) -> None:
    killed(traced, after_seconds=after_seconds)


@pytest.mark.slow
@pytest.mark.parametrize("after_seconds", [0.5, 1.0, 1.5, 2.0, 4.0, 6.0])
def test_after_our_own_death_at_other_moments(traced: CommandLine, after_seconds: float) -> None:
    killed(traced, after_seconds=after_seconds)


@pytest.mark.parametrize("cure", ["doctor", "a later run"])
@pytest.mark.parametrize("user", ["poor", "maker"])
def test_what_our_death_left_on_a_server_is_removed(
    traced: CommandLine, make_subject: MakeSubject, host: Address, own: Address, cure: str, user: str
) -> None:
    address = own if user == "poor" else host.as_user(user, PASSWORD)
    folder = make_subject()
    killed(traced, folder, "--server", address.url(), after_seconds=4.0)
    assert things_in(own) if user == "poor" else left_on(host), (
        "the death left nothing: it came too early to show anything"
    )
    if cure == "doctor":
        said = traced("doctor", "--clean", address.url())
        assert said.code == 0, said
        assert "dropped" in said.out
        assert PASSWORD not in said.out + said.err
        assert traced("doctor", "--clean", address.url()).out == "nothing of ours was there\n"
    else:
        said = traced("probe", folder, "--server", address.url())
        assert said.code == 0, said
    assert things_in(own) == []
    assert left_on(host) == []


def test_what_our_death_left_beside_somebodys_things_is_removed_and_theirs_is_not(
    traced: CommandLine, make_subject: MakeSubject, own: Address
) -> None:
    with psycopg.connect(own.dsn(), autocommit=True) as connection:
        connection.execute((make_subject() / "schema.sql").read_text())
    theirs = things_in(own)
    folder = make_subject(edits=[("subject.toml", 'install.sql     = "schema.sql"', "")])
    killed(traced, folder, "--server", own.url(), "--allow-existing", after_seconds=4.0)
    assert "schema queueproof" in things_in(own), "the death came too early to show anything"
    said = traced("doctor", "--clean", own.url())
    assert said.code == 0
    assert "trigger queueproof_truth on jobs" in said.out
    assert things_in(own) == theirs


INTERRUPTED_WHILE_IT_IMPORTS = """
import os, sys
module, number = sys.argv[1], int(sys.argv[2])

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Interrupts())
from harness.entry import main
sys.argv[1:] = ["gate", "--only", "killed"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "module", ["asyncio", "typer", "harness.event_loop", "harness.run.gate", "psycopg", "scenarios"]
)
def test_an_interrupt_of_an_import_is_one_line(tmp_path: Path, module: str, number: int) -> None:
    words = [sys.executable, "-c", INTERRUPTED_WHILE_IT_IMPORTS, module, str(int(number))]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "interrupted; nothing had been started\n"
    assert not list(tmp_path.iterdir())
