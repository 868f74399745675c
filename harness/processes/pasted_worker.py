"""The worker for a queue that is only statements: a program of its own, which imports nothing of ours.

It adds no safety of its own: a result is written whatever the renewals said, so that the statements alone are judged.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg.rows import dict_row

CALL_SECONDS = 60.0
STALE = 409  # refused for an older token: the job is somebody else's now
GOODBYE_SECONDS = 10.0
DEFAULT_POLL_SECONDS = 0.2

Connection = psycopg.AsyncConnection[dict[str, Any]]
Job = dict[str, Any]


class Hopeless(Exception):
    """Trying again cannot help: a setting is missing or a statement is wrong."""


@dataclass(frozen=True)
class Settings:
    """What the harness says in the environment."""

    dsn: str
    sink: str
    worker: str
    slots: int
    statements: Mapping[str, str]
    lease_seconds: float | None
    heartbeat_seconds: float | None
    poll_seconds: float

    @staticmethod
    def read(env: Mapping[str, str]) -> "Settings":
        try:
            return Settings(
                dsn=env["DATABASE_URL"],
                sink=env["QUEUEPROOF_SINK"],
                worker=env["QUEUEPROOF_WORKER"],
                slots=int(env.get("QUEUEPROOF_SLOTS", "1")),
                statements=json.loads(env["QUEUEPROOF_STATEMENTS"]),
                lease_seconds=_seconds(env.get("QUEUEPROOF_LEASE")),
                heartbeat_seconds=_seconds(env.get("QUEUEPROOF_HEARTBEAT")),
                poll_seconds=_seconds(env.get("QUEUEPROOF_POLL")) or DEFAULT_POLL_SECONDS,
            )
        except KeyError as missing:
            raise Hopeless(f"{missing.args[0]} is not set; this program is started by queueproof") from None
        except ValueError as wrong:
            raise Hopeless(f"a setting is not what it should be: {wrong}") from None


def _seconds(text: str | None) -> float | None:
    return float(text) if text else None


class Session:
    """One connection, opened again after it broke; statements on it follow one another."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def run(self, statement: str, parameters: Mapping[str, Any]) -> tuple[list[Job], int]:
        """The rows a statement returned, if it returns any, and how many it touched. It is never repeated."""
        async with self._turn:
            if self._connection is None or self._connection.closed:
                self._connection = await Connection.connect(
                    self._dsn,
                    autocommit=True,
                    row_factory=dict_row,
                    prepare_threshold=None,  # a pooler would give one session's prepared statements to another
                )
            cursor = await self._connection.execute(statement, parameters)
            rows = await cursor.fetchall() if cursor.description is not None else []
            return rows, cursor.rowcount

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class PastedWorker:
    """Claims while it has free slots, calls the sink for each job, and writes what came of it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._work = Session(settings.dsn)
        self._heart = Session(settings.dsn)
        self._held: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.slots)
        self._stopping = asyncio.Event()
        self._freed = asyncio.Event()
        self._hopeless: Hopeless | None = None

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT, then end what was begun and hand back what was not."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stopping.set)
        beating = self._begin(self._beat()) if "renew" in self._settings.statements else None
        try:
            while not self._stopping.is_set():
                # The claim comes first: a worker that is stopped before its first write must stand in its claim.
                claimed = await self._claim()
                await self._expire()
                if not claimed:
                    await self._pause(self._settings.poll_seconds)
            if calls := self._tasks - {beating}:
                await asyncio.wait(calls, timeout=GOODBYE_SECONDS)
            if self._hopeless is not None:
                raise self._hopeless
        finally:
            for task in self._tasks:
                task.cancel()
            await self._work.close()
            await self._heart.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Hopeless):
            self._hopeless = error
            self._stopping.set()

    async def _pause(self, at_most_seconds: float) -> None:
        """Until a slot is free again, a signal comes, or the time is over."""
        self._freed.clear()
        waits = [asyncio.create_task(event.wait()) for event in (self._freed, self._stopping)]
        await asyncio.wait(waits, timeout=at_most_seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _claim(self) -> bool:
        """Claim as many jobs as there are free slots; whether there were any."""
        free = self._settings.slots - len(self._held)
        if free <= 0:
            return False
        jobs, _ = await self._say("claim", self._work, {"batch": free})
        for job in jobs:
            if not {"id", "key"} <= job.keys():
                raise Hopeless(f"claim must return columns named id and key; it returned {', '.join(job)}")
            self._held[str(job["id"])] = job
            self._begin(self._do(job))
        return bool(jobs)

    async def _expire(self) -> None:
        if "expire" in self._settings.statements:
            await self._say("expire", self._work, {})

    async def _do(self, job: Job) -> None:
        try:
            async with self._slots:
                if self._stopping.is_set():
                    await self._result("release", job)
                    return
                status = await self._call(job)
                if status is None or status >= 500:
                    told = "the connection broke" if status is None else f"the outside answered {status}"
                    if "retry" in self._settings.statements:
                        await self._result("retry", job, error=told)
                    else:
                        await self._result("release", job)
                elif status < 300:
                    await self._result("complete", job)
                elif status != STALE or job.get("token") is None:
                    await self._result("fail", job, error=f"the outside answered {status}")
        finally:
            self._held.pop(str(job["id"]), None)
            self._freed.set()

    async def _call(self, job: Job) -> int | None:
        """POST to the sink; its status, or None when the connection broke."""
        key = quote(str(job["key"]), safe="")
        sink = urlsplit(self._settings.sink)
        lines = [f"POST {sink.path}/{key} HTTP/1.1", f"Host: {sink.netloc}", "Content-Length: 0", "Connection: close"]
        lines.append(f"Idempotency-Key: {key}")
        if job.get("token") is not None:
            lines.append(f"Fencing-Token: {job['token']}")
        try:
            async with asyncio.timeout(CALL_SECONDS):
                reader, writer = await asyncio.open_connection(sink.hostname, sink.port)
                with contextlib.closing(writer):
                    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                    return int((await reader.readline()).split()[1])
        except (OSError, TimeoutError, ValueError, IndexError) as broken:
            _tell(f"calling about {key[:80]}: {broken or type(broken).__name__}")
            return None

    async def _result(self, name: str, job: Job, error: str | None = None) -> None:
        """Write a result. What has no statement, and what could not be written, is left to the lease."""
        if name not in self._settings.statements:
            return
        told = {"error": error} if error is not None else {}
        _, touched = await self._say(name, self._work, self._about(job) | told)
        if touched == 0:
            _tell(f"{name} of job {job['id']} matched no row")

    async def _beat(self) -> None:
        """Renew what is held, on a connection of its own."""
        beat_seconds = self._settings.heartbeat_seconds
        if beat_seconds is None:
            raise Hopeless("QUEUEPROOF_HEARTBEAT is not set, but renew is given")
        while True:
            await asyncio.sleep(beat_seconds)
            for job in tuple(self._held.values()):
                await self._say("renew", self._heart, self._about(job))

    def _about(self, job: Job) -> dict[str, Any]:
        return {"id": job["id"], "key": job["key"], "token": job.get("token")}

    async def _say(self, name: str, session: Session, parameters: dict[str, Any]) -> tuple[list[Job], int]:
        """Run one of the statements. A broken connection or a refusal is told and passed over; a wrong statement ends us."""
        settings = self._settings
        always = {"worker": settings.worker, "lease_seconds": settings.lease_seconds}
        try:
            return await session.run(settings.statements[name], always | parameters)
        except psycopg.ProgrammingError as wrong:
            raise Hopeless(f"{name} is not a statement this database understands: {wrong}") from wrong
        except psycopg.Error as refused:
            _tell(f"{name}: {refused}")
            return [], -1


def _tell(sentence: str) -> None:
    sys.stderr.write(sentence.strip() + "\n")
    sys.stderr.flush()


def main() -> int:
    """Run until told to stop. Exits 1 with a sentence when going on is hopeless."""
    try:
        asyncio.run(PastedWorker(Settings.read(os.environ)).run())
    except Hopeless as hopeless:
        _tell(str(hopeless))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
