"""A server in a container: hurt through the engine, its clock moved, and gone afterwards, also when the harness is killed.

Needs a Docker engine and an image, named by QUEUEPROOF_IMAGE; tests/docker/make_image.sh makes one where no registry is reached.
"""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from harness.postgres.cluster import open_cluster
from harness.postgres.databases import connect
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog

IMAGE = os.environ.get("QUEUEPROOF_IMAGE", "")
GONE_SECONDS = 10.0

pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="QUEUEPROOF_IMAGE names no image"),
    # what testcontainers says of itself at import is no matter of ours
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def containers() -> set[str]:
    listed = subprocess.run(
        ["docker", "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split() if name.startswith("queueproof-")}


def published(names: set[str]) -> str:
    """Where the container's port can be reached."""
    (name,) = names
    told = ["docker", "ps", "--filter", f"name={name}", "--format", "{{.Ports}}"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout


def test_it_is_stopped_crashed_and_its_clock_moved_and_nothing_is_left(watchdog: Watchdog, tmp_path: Path) -> None:
    before = containers()

    async def play() -> None:
        async with open_cluster(parse_server(f"docker:{IMAGE}"), watchdog, tmp_path, clock=True) as cluster:
            assert len(containers() - before) == 1
            port = cluster.address.port
            if cluster.address.host in ("localhost", "127.0.0.1"):
                assert f"127.0.0.1:{port}->" in published(containers() - before)
            for mode in ("fast", "immediate"):
                await cluster.stop(mode)
                with pytest.raises(psycopg.OperationalError):
                    await connect(cluster.address)
                await cluster.start()
                assert cluster.address.port == port
            async with await connect(cluster.address) as witness, await connect(cluster.address) as doomed:
                cluster.backend_kill9(doomed.info.backend_pid)
                with pytest.raises(psycopg.OperationalError):
                    await witness.execute("select pg_sleep(20)")
            await cluster.start()
            async with await connect(cluster.as_worker(cluster.address)) as connection:
                assert cluster.clock is not None
                first = await (await connection.execute("select now()")).fetchone()
                cluster.clock.advance(3600)
                then = await (await connection.execute("select now()")).fetchone()
                assert first is not None
                assert then is not None
                assert (then[0] - first[0]).total_seconds() > 3590

    asyncio.run(play())
    assert containers() <= before
    assert "database system is ready" in (tmp_path / "server.log").read_text()


def test_the_watchdog_removes_it(tmp_path: Path) -> None:
    before = containers()
    watchdog = Watchdog().start()

    async def abandoned() -> None:
        opened = open_cluster(parse_server(f"docker:{IMAGE}"), watchdog, tmp_path)
        await opened.__aenter__()
        assert containers() - before
        watchdog.clean_up()  # what it does by itself when the harness is dead
        deadline = time.monotonic() + GONE_SECONDS
        while containers() - before and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        assert containers() <= before
        await opened.__aexit__(None, None, None)

    asyncio.run(abandoned())
