"""When the harness dies, all that it started is gone within five seconds; while it lives, the watchdog ends nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.contracts.problem import EnvironmentFailed
from harness.processes.watchdog import Watchdog
from tests.fixtures.processes import alive

ROOT = Path(__file__).parents[3]
WITHIN_SECONDS = (
    15.0  # about one on a machine of its own; the point is that nothing is left, not how fast a busy one is
)

HARNESS = """
import asyncio, json, os, signal, sys, tempfile
from pathlib import Path
from harness.postgres.cluster import open_cluster
from harness.postgres.databases import connect
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog
from harness.processes.worker import WorkerProcess

async def main(folder):
    async with Watchdog() as watchdog, open_cluster(parse_server("embedded"), watchdog, folder) as cluster:
        family, paused = WorkerProcess(), WorkerProcess()
        script = "sleep 60 & echo $! > child; setsid sleep 60 & echo $! > runaway; wait"
        await family.start(["/bin/sh", "-c", script], folder, {"PATH": os.environ["PATH"]}, folder / "log", watchdog)
        await paused.start(["sleep", "60"], folder, {"PATH": os.environ["PATH"]}, folder / "log", watchdog)
        paused.signal(signal.SIGSTOP)
        scratch = tempfile.mkdtemp()
        watchdog.watch_folder(Path(scratch))
        async with await connect(cluster.address) as session:
            while not ((folder / "runaway").exists() and (folder / "runaway").read_text()):
                await asyncio.sleep(0.01)
            pids = {
                "watchdog": watchdog.pid, "postmaster": cluster.server.pid, "backend": session.info.backend_pid,
                "worker": family.pid, "paused": paused.pid,
                "child": int((folder / "child").read_text()), "runaway": int((folder / "runaway").read_text()),
            }
            print(json.dumps([pids, [scratch, str(cluster.server.data.parent)]]), flush=True)
            await asyncio.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
asyncio.run(main(Path(sys.argv[1])))
"""


def true_within(true: Callable[[], bool], seconds: float = WITHIN_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda blow: blow.name)
def test_nothing_outlives_the_harness(tmp_path: Path, blow: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    ) as harness:
        assert harness.stdout is not None
        pids, folders = json.loads(harness.stdout.readline())
        assert [name for name, pid in pids.items() if not alive(pid)] == []

        os.killpg(harness.pid, blow)
        struck = time.monotonic()
        harness.wait(WITHIN_SECONDS)

    true_within(lambda: not any(map(alive, pids.values())), WITHIN_SECONDS - (time.monotonic() - struck))
    assert [name for name, pid in pids.items() if alive(pid)] == []
    assert [folder for folder in folders if Path(folder).exists()] == []
    assert "received immediate shutdown request" in (tmp_path / "server.log").read_text(), "it leaves shared memory"


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


def test_goodbye_ends_nothing(tmp_path: Path) -> None:
    with sleeper() as process:
        with Watchdog() as watchdog:
            watchdog.watch_group(process.pid)
            watchdog.watch_folder(tmp_path)
            guard = watchdog.pid
        assert not alive(guard)
        assert alive(process.pid)
        assert tmp_path.exists()
        process.kill()


def test_after_an_error_what_is_still_watched_goes(tmp_path: Path) -> None:
    kept, doomed = tmp_path / "kept", tmp_path / "doomed"
    kept.mkdir()
    doomed.mkdir()

    def fail_with(watchdog: Watchdog, forgotten: int, watched: int) -> None:
        for pid in (forgotten, watched):
            watchdog.watch_group(pid)
        for folder in (kept, doomed):
            watchdog.watch_folder(folder)
        watchdog.forget_group(forgotten)
        watchdog.forget_folder(kept)
        raise ZeroDivisionError

    with sleeper() as forgotten, sleeper() as watched:
        with pytest.raises(ZeroDivisionError), Watchdog() as watchdog:
            fail_with(watchdog, forgotten.pid, watched.pid)
        assert watched.wait(WITHIN_SECONDS) == -signal.SIGKILL
        assert alive(forgotten.pid)
        forgotten.kill()
    assert kept.exists()
    assert not doomed.exists()


def ignores(pid: int) -> set[int]:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_it_heeds_no_polite_signal() -> None:
    with Watchdog() as watchdog:
        polite = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        assert true_within(lambda: ignores(watchdog.pid) >= set(polite)), "its first lines have not run"
        for number in polite:
            os.kill(watchdog.pid, number)
        assert not true_within(lambda: not alive(watchdog.pid), 0.1)
        assert os.getsid(watchdog.pid) == watchdog.pid


def test_a_watchdog_that_is_gone_is_noticed() -> None:
    with Watchdog() as watchdog:
        os.kill(watchdog.pid, signal.SIGKILL)
        assert true_within(lambda: not alive(watchdog.pid))
        with pytest.raises(EnvironmentFailed, match="the watchdog process is gone"):
            watchdog.watch_group(os.getpid())
        watchdog.forget_group(os.getpid())
