"""What these tests share: an installed queue, an outside world that counts, and real worker processes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
from aiohttp import web
from psycopg.rows import DictRow, dict_row

from harness.postgres.address import Address
from reference_queue.statements import packaged, schema

ROOT = Path(__file__).parents[3]


class Queue:
    """An installed queue and a connection to look into it."""

    def __init__(self, dsn: str, replaced: dict[str, str] | None = None) -> None:
        self.dsn = dsn
        self.replaced = replaced or {}  # statements by name, in place of the package's
        self.connection: psycopg.Connection[DictRow] = psycopg.connect(dsn, autocommit=True, row_factory=dict_row)

    def close(self) -> None:
        self.connection.close()

    def run(self, text: str, values: dict[str, Any] | None = None) -> list[DictRow]:
        cursor = self.connection.execute(text, values)
        return cursor.fetchall() if cursor.description else []

    def named(self, name: str, **values: Any) -> list[DictRow]:
        """Run a statement of the package by name; ``batch`` is written into it as the worker does."""
        text = self.replaced.get(name) or packaged(name)
        if "batch" in values:
            text = text.replace("limit 1 /* batch */", f"limit {values.pop('batch')}")
        return self.run(text, values)

    def enqueue(self, key: str, **more: Any) -> int | None:
        values = {
            "kind": "default",
            "priority": 0,
            "run_at": None,
            "group": None,
            "tenant": None,
            "business_key": None,
            "max_attempts": 3,
            "body": None,
        }
        rows = self.named("enqueue", **{**values, "key": key, **more})
        return rows[0]["id"] if rows else None

    def claim(
        self, worker: str = "w", batch: int = 1, lease: str = "10s", name: str = "claim", **more: Any
    ) -> list[DictRow]:
        if name == "takeover":
            more.setdefault("held", [])
        return self.named(name, kinds=["default"], worker=worker, lease=lease, batch=batch, **more)

    def job(self, key: str) -> DictRow:
        return self.run("select * from queue_job where operation_key = %(key)s", {"key": key})[0]

    def until(self, wanted: Callable[[], bool], what: str, seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not wanted():
            assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
            time.sleep(0.02)

    def until_state(self, key: str, *states: str, seconds: float = 15) -> DictRow:
        self.until(lambda: self.job(key)["state"] in states, f"{key} {states}", seconds)
        return self.job(key)

    def inconsistencies(self) -> list[DictRow]:
        return self.named("consistent")


@pytest.fixture
def queue(database: Address) -> Iterator[Queue]:
    queue = Queue(database.dsn())
    for _, statement in schema():
        queue.run(statement)
    with contextlib.closing(queue):
        yield queue
        assert queue.inconsistencies() == []


class Outside:
    """A keyed service on a thread of its own. ``behave`` decides about a call: a status, or a wait in seconds first."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []
        self.asked: list[str] = []
        self.applied: set[str] = set()
        self.behave: Callable[[str], tuple[float, int]] = lambda _key: (0.0, 200)
        self.port = 0
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop

    async def _call(self, request: web.BaseRequest) -> web.StreamResponse:
        key = unquote(request.raw_path.removeprefix("/"))
        if request.method == "GET":
            self.asked.append(key)
            return web.Response(status=200 if key in self.applied else 404)
        self.calls.append((key, request.headers.get("Fencing-Token")))
        wait_seconds, status = self.behave(key)
        await asyncio.sleep(wait_seconds)
        if 200 <= status < 300:
            self.applied.add(key)
        return web.Response(status=status, headers={"X-Request-Id": f"r{len(self.calls)}"})

    def run(self, ready: Callable[[], None]) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            web_server = web.Server(self._call, handler_cancellation=True, access_log=None)
            server = await self._loop.create_server(web_server, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready()
            await self._over.wait()
            server.close()
            await web_server.shutdown(0.1)

        asyncio.run(serve())

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)


@pytest.fixture
def outside() -> Iterator[Outside]:
    outside = Outside()
    ready = threading.Event()
    thread = threading.Thread(target=outside.run, args=(ready.set,), daemon=True)
    thread.start()
    assert ready.wait(5)
    yield outside
    outside.stop()
    thread.join(5)


class Workers:
    """Real worker processes, ended with the test."""

    def __init__(self, queue: Queue, outside: Outside, folder: Path) -> None:
        self._queue = queue
        self._outside = outside
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str = "w1", **environment: str) -> subprocess.Popen[bytes]:
        log = self._folder / f"{name}-{len(self.processes)}.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "reference_queue.worker"],
                cwd=ROOT,
                stderr=stderr,
                env={
                    **os.environ,
                    "DATABASE_URL": self._queue.dsn,
                    "QUEUEPROOF_SINK": f"http://127.0.0.1:{self._outside.port}",
                    "QUEUEPROOF_WORKER": name,
                    "QUEUE_LEASE": "1s",
                    "QUEUE_HEARTBEAT": "0.2s",
                    "QUEUE_POLL": "0.2s",
                    "QUEUE_BACKOFF_BASE": "20ms",
                    **environment,
                },
            )
        self.processes.append(process)
        return process

    def log(self) -> str:
        return "".join(file.read_text() for file in sorted(self._folder.glob("*.log")))

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(5)


@pytest.fixture
def workers(queue: Queue, outside: Outside, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(queue, outside, tmp_path)
    yield workers
    workers.close()
