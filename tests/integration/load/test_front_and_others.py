"""Locust's page in a real browser, Locust in several processes, and strangers at the sink."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.contracts.verdict import Verdict
from harness.load.front import front_named
from harness.load.locust_process import LOCUSTFILE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def part(loaded, name):
    return next(each for each in loaded.parts if each.name == name)


def browser():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(browser() is None, reason="needs Chromium")
def test_locusts_page_shows_the_run_and_its_phases(play, tmp_path):
    page, seen = {}, {}

    def said(line):
        if match := re.search(r"http://127\.0\.0\.1:\d+", line):
            page["url"] = match[0]

    def watch(progress):
        # Once the recovery is under way every earlier phase is in its table.
        if progress.phase == "recovery" and "shot" not in seen:
            seen["shot"] = threading.Thread(target=look, daemon=True)
            seen["shot"].start()

    def look():
        command = [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1400,1000",
            "--virtual-time-budget=6000",
        ]
        shot = tmp_path / "locust.png"
        subprocess.run([*command, f"--screenshot={shot}", page["url"]], capture_output=True, timeout=60, check=False)
        dumped = subprocess.run([*command, "--dump-dom", page["url"]], capture_output=True, timeout=60, check=False)
        seen["dom"], seen["png"] = dumped.stdout.decode("utf-8", "replace"), shot

    loaded = play(watch=watch, said=said, options={"front": front_named("locust-web")}, outage="8s", at_most="200s")
    seen["shot"].join(120)
    assert "steady: enqueue" in seen["dom"]
    assert "outage: enqueue" in seen["dom"]
    assert seen["png"].stat().st_size > 10_000
    assert part(loaded, "nothing_lost").verdict is Verdict.PASS
    assert loaded.run.produced.count > 100


def test_locust_in_two_processes_sends_every_job_once(play):
    loaded = play(options={"front": front_named("locust:2")})
    produced = loaded.run.produced
    assert part(loaded, "nothing_lost").verdict is Verdict.PASS
    assert produced.job.tolist() == list(range(produced.count))
    assert len(loaded.run.ended) == produced.count


def test_a_call_without_the_secret_is_a_strangers(tmp_path):
    import aiohttp

    from harness.history.recorder import Recorder
    from harness.sink import Sink

    async def call():
        with Recorder(tmp_path / "history.jsonl") as recorder:
            sink = Sink("keyed", recorder.play("a"), "127.0.0.2", secret="not-to-be-guessed")
            await sink.start()
            try:
                async with aiohttp.ClientSession() as session:
                    async with session.post(f"http://127.0.0.2:{sink.port}/1/job") as refused:
                        first = refused.status
                    async with session.post(f"{sink.url(1)}/job") as taken:
                        return first, taken.status, len(sink.effects)
            finally:
                await sink.close()

    assert asyncio.run(call()) == (404, 200, 1)


def test_locust_without_orders_says_so_and_ends(tmp_path):
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless"]
    environment = {name: value for name, value in os.environ.items() if name != "QUEUEPROOF_ORDERS"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert b"QUEUEPROOF_ORDERS is not set: there is no schedule to send" in ended.stderr


def test_locust_workers_on_other_machines_share_the_schedule(play, tmp_path):
    """Two of them, started by hand with the printed command against a master on another loopback address."""
    started = []

    def said(line):
        if "--master-host" not in line:
            return
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        for number in range(2):
            with (tmp_path / f"locust-worker-{number}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        ["bash", "-c", f"export {line.strip().replace(' python3', '; exec python3', 1)}"],
                        cwd=tmp_path,
                        env={"PATH": path, "HOME": str(tmp_path)},
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )

    try:
        loaded = play(said=said, options={"front": front_named("locust-master:2", "127.0.0.5")})
        codes = [process.wait(20) for process in started]  # the master tells them to go
    finally:
        for process in started:
            process.kill()
            process.wait()
    produced = loaded.run.produced
    assert codes == [0, 0]
    assert part(loaded, "nothing_lost").verdict is Verdict.PASS
    assert produced.job.tolist() == list(range(produced.count))
    assert len(loaded.run.ended) == produced.count
    assert produced.lag_seconds(0.5) < 0.05
