"""A worker is a whole process group: started, signalled, watched, ended, and its output read, whatever it prints."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from harness.contracts.problem import SubjectFailed
from harness.processes import worker as worker_module
from harness.processes.watchdog import Watchdog
from harness.processes.worker import WorkerProcess
from tests.fixtures.processes import alive

ENV = {"PATH": "/usr/bin:/bin"}
SOON_SECONDS = 5.0

Start = Callable[..., Coroutine[None, None, WorkerProcess]]


@pytest.fixture
def start(watchdog: Watchdog, tmp_path: Path) -> Start:
    async def start_it(script: str, worker: WorkerProcess | None = None) -> WorkerProcess:
        worker = worker or WorkerProcess("worker 1")
        await worker.start(["/bin/sh", "-c", script], tmp_path, ENV, tmp_path / "worker.log", watchdog)
        return worker

    return start_it


async def until(true: Callable[[], bool], within_seconds: float = SOON_SECONDS) -> None:
    deadline = time.monotonic() + within_seconds
    while not true():
        assert time.monotonic() < deadline, "it did not become true in time"
        await asyncio.sleep(0.01)


def test_exit_code_output_and_callback(start: Start) -> None:
    async def play() -> None:
        codes: list[int] = []
        worker = WorkerProcess("worker 1", codes.append)
        await start("echo out; echo err >&2; exit 7", worker)

        assert await worker.wait(SOON_SECONDS) == 7
        assert codes == [7]
        assert not worker.running
        assert worker.state() == "gone"
        assert worker.tail() == "out\nerr"

    asyncio.run(play())


def test_environment_is_what_was_given(start: Start, watchdog: Watchdog) -> None:
    async def play() -> None:
        worker = await start("exec env")
        assert await worker.wait(SOON_SECONDS) == 0
        names = {line.partition("=")[0] for line in worker.tail(50).splitlines()}
        assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", *watchdog.mark}

    asyncio.run(play())


def test_wait_gives_up_and_kill_reaps(start: Start) -> None:
    async def play() -> None:
        worker = await start("exec sleep 60")

        assert await worker.wait(0.05) is None
        assert worker.running
        assert await worker.kill() == -signal.SIGKILL
        assert not alive(worker.pid)

    asyncio.run(play())


def test_the_whole_group_is_killed(start: Start, tmp_path: Path) -> None:
    async def play() -> None:
        worker = await start("sleep 60 & echo $! > child; wait")
        await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip() != "")
        child = int((tmp_path / "child").read_text())
        assert alive(child)

        await worker.kill()

        assert not alive(child)

    asyncio.run(play())


def test_a_pause_is_proven_by_the_system(start: Start) -> None:
    async def play() -> None:
        worker = await start("sleep 60 & wait")
        assert worker.state() == "running"

        worker.signal(signal.SIGSTOP)
        await until(lambda: worker.state() == "stopped")
        worker.signal(signal.SIGCONT)
        await until(lambda: worker.state() == "running")
        worker.signal(signal.SIGSTOP)
        await until(lambda: worker.state() == "stopped")

        assert await worker.kill() == -signal.SIGKILL

    asyncio.run(play())


def test_a_group_is_stopped_only_when_all_of_it_is(start: Start) -> None:
    async def play() -> None:
        worker = await start("sh -c 'kill -STOP $$' & exec sleep 60")
        assert await worker.wait(0.2) is None
        assert worker.state() == "running"
        await worker.kill()

    asyncio.run(play())


def test_a_signal_to_one_that_is_gone_is_no_error(start: Start) -> None:
    async def play() -> None:
        worker = WorkerProcess("worker 1")
        worker.signal(signal.SIGTERM)
        await start("exit 0", worker)
        await worker.wait(SOON_SECONDS)
        worker.signal(signal.SIGTERM)
        assert await worker.kill() == 0

    asyncio.run(play())


def test_a_child_may_finish_after_its_wrapper(start: Start, tmp_path: Path) -> None:
    """`sh -c worker` dies of the group's SIGTERM at once; the worker below it is still shutting down."""

    async def play() -> None:
        worker = await start(
            "sh -c 'trap \"sleep 0.3; touch finished; exit 0\" TERM; touch up; while :; do sleep 0.05; done'; :"
        )
        await until((tmp_path / "up").exists)

        worker.signal(signal.SIGTERM)

        assert await worker.wait(SOON_SECONDS) == -signal.SIGTERM
        assert (tmp_path / "finished").exists(), "its end was reported while a part of it still acted"

    asyncio.run(play())


def test_a_child_left_behind_is_killed(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "LEFTOVERS_SECONDS", 0.2)

    async def play() -> None:
        worker = await start("sleep 60 & echo $! > child; exit 3")

        assert await worker.wait(SOON_SECONDS) == 3
        assert not alive(int((tmp_path / "child").read_text()))

    asyncio.run(play())


def test_started_again_it_goes_on_in_the_same_log(start: Start) -> None:
    async def play() -> None:
        worker = await start("echo first; exit 1")
        assert await worker.wait(SOON_SECONDS) == 1
        await start("echo second", worker)
        assert await worker.wait(SOON_SECONDS) == 0
        assert worker.tail() == "second"  # of this life; what came before is still in the file

    asyncio.run(play())


def test_binary_output_can_be_printed(start: Start) -> None:
    async def play() -> None:
        worker = await start(r"printf 'before\n\033[31mred\000\377\376 \342\200\256 gr\303\274n\r\n'; printf '\tlast'")
        await worker.wait(SOON_SECONDS)
        assert worker.tail() == "before\n\\x1b[31mred\\x00\ufffd\ufffd \\u202e grün\n\tlast"
        assert worker.tail(1) == "\tlast"

    asyncio.run(play())


def test_a_tail_is_bounded(start: Start) -> None:
    async def play() -> None:
        worker = await start("head -c 3000000 /dev/zero | tr '\\0' x")
        await worker.wait(SOON_SECONDS)
        assert len(worker.tail()) <= 600

    asyncio.run(play())


def test_what_cannot_start_says_why(watchdog: Watchdog, tmp_path: Path) -> None:
    async def play(command: list[str], folder: Path) -> None:
        await WorkerProcess("worker 3").start(command, folder, ENV, tmp_path / "log", watchdog)

    with pytest.raises(SubjectFailed, match=r"worker 3 cannot start: './nothing': No such file"):
        asyncio.run(play(["./nothing"], tmp_path))
    with pytest.raises(SubjectFailed, match=r"worker 3 cannot start: its folder .*/gone does not exist"):
        asyncio.run(play([sys.executable], tmp_path / "gone"))
    (tmp_path / "plain").write_text("not a program")
    with pytest.raises(SubjectFailed, match="Permission denied"):
        asyncio.run(play(["./plain"], tmp_path))
