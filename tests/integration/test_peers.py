"""Other people's queues and what ``init`` writes, as their own processes, against a real PostgreSQL and a real sink, with nothing of ours in between."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from harness.contracts.point import Point
from harness.contracts.subject import Subject
from harness.history.events import Answered, Applied, Called
from harness.history.recorder import PlayRecorder, Recorder
from harness.postgres.address import Address
from harness.run.starters import KINDS, write_starter
from harness.run.subject_file import fill, load_subject
from harness.sink import Sink

PEERS = Path(__file__).parents[2] / "harness" / "subjects" / "peers"
ALL = ["shell", "shell_fenced", "pasted", "pgmq"]
STARTERS = [f"starter {kind}" for kind in KINDS]
UGLY = ["plain", 'it\'s "so" <b>100%</b> \\ $x `y`', "two\nlines\tand\x07bell", "../ключ/?a=b#c", "k" * 4096]


@dataclass
class Stage:
    subject: Subject
    database: Address
    sink: Sink
    record: PlayRecorder
    folder: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, **self.database.env(), "DATABASE_URL": self.database.url()}

    async def install(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.database.dsn(), autocommit=True) as connection:
            for file in self.subject.install_sql:
                await connection.execute(file.read_text())
        if self.subject.install_command:
            await self._run(self.subject.install_command, "")

    async def enqueue(self, *keys: str) -> None:
        if self.subject.enqueue_sql is not None:
            async with await psycopg.AsyncConnection.connect(self.database.dsn(), autocommit=True) as connection:
                for key in keys:
                    await connection.execute(self.subject.enqueue_sql, {"key": key})
            return
        acknowledged = await self._run(
            self.subject.enqueue_command, "".join(json.dumps({"key": key}) + "\n" for key in keys)
        )
        assert len(acknowledged.splitlines()) == len(keys)

    async def _run(self, command: tuple[str, ...], said: str) -> str:
        words = [fill(self.subject, word) for word in command]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=self.subject.folder, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        heard, _ = await process.communicate(said.encode())
        assert process.returncode == 0
        return heard.decode()

    def worker(self, number: int, **overrides: float) -> subprocess.Popen[bytes]:
        env = self.env | {
            "QUEUEPROOF_SINK": self.sink.url(number),
            "QUEUEPROOF_WORKER": f"w{number}",
            "QUEUEPROOF_SLOTS": "1",
        }
        env |= {name: fill(self.subject, value, **overrides) for name, value in self.subject.worker_env.items()}
        with (self.folder / f"worker-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                [fill(self.subject, word) for word in self.subject.worker_command],
                cwd=self.subject.folder,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    async def states(self) -> dict[str, str]:
        """What the mapping says of every row there is, by key."""
        jobs = self.subject.jobs
        async with await psycopg.AsyncConnection.connect(self.database.dsn(), autocommit=True) as connection:
            rows = await connection.execute(f"select ({jobs.key})::text, ({jobs.state})::text from {jobs.table}")
            return dict(await rows.fetchall())

    async def settles(self, **wanted: str) -> None:
        """Until every key stands in its state; a row that is gone stands in the state a deletion means."""
        await self.becomes(wanted)

    async def becomes(self, wanted: dict[str, str]) -> None:
        deadline, seen = time.monotonic() + 20, {}
        while time.monotonic() < deadline:
            rows = await self.states()
            seen = {key: rows.get(key, self.subject.jobs.deleted) for key in wanted}
            if seen == wanted:
                return
            await asyncio.sleep(0.05)
        logs = "\n".join(log.read_text(errors="replace") for log in self.folder.glob("worker-*.log"))
        pytest.fail(f"waited 20 s for {wanted!r:.300}; saw {seen!r:.300}; the workers said: {logs}")

    async def sink_sees_the_caller_gone(self) -> None:
        """The leader is reaped before its child is: the curl of a shell worker may still hold the call open."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if any(isinstance(entry.what, Answered) and entry.what.status is None for entry in self.record.entries):
                return
            await asyncio.sleep(0.01)
        pytest.fail("waited 20 s for the killed worker's call to break; it stayed open")

    def told(self, kind: type[Called] | type[Applied]) -> list[str]:
        return [entry.what.key for entry in self.record.entries if isinstance(entry.what, kind)]


@contextlib.asynccontextmanager
async def stage(name: str, database: Address, folder: Path) -> AsyncIterator[Stage]:
    if name in STARTERS:
        write_starter(name.removeprefix("starter "), folder / "subject")
    subject = load_subject(folder / "subject" if name in STARTERS else PEERS / name)
    with Recorder(folder / "history.jsonl") as recorder:
        record = recorder.play("play")
        sink = Sink(subject.sink, record)
        await sink.start()
        stage = Stage(subject, database, sink, record, folder)
        try:
            await stage.install()
            yield stage
        finally:
            for process in stage.running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            await sink.close()


@pytest.mark.parametrize("name", ALL + STARTERS)
def test_every_job_is_called_once_and_done(name, database, tmp_path):
    async def play():
        async with stage(name, database, tmp_path) as on:
            await on.enqueue(*UGLY)
            on.worker(1)
            on.worker(2)
            await on.becomes(dict.fromkeys(UGLY, "done"))
            assert sorted(on.told(Called)) == sorted(on.told(Applied)) == sorted(UGLY)

    asyncio.run(play())


@pytest.mark.parametrize("name", ALL + STARTERS)
def test_a_refusal_ends_the_job_and_an_outage_does_not(name, database, tmp_path):
    async def play():
        async with stage(name, database, tmp_path) as on:
            on.sink.answer_with(422, key="bad")
            on.sink.answer_with(503, key="later", times=1)
            on.sink.drop_reply(key="dropped")
            await on.enqueue("bad", "later", "dropped")
            on.worker(1)
            archived = "done" if name == "pgmq" else "dead"
            await on.settles(bad=archived, later="done", dropped="done")
            called = on.told(Called)
            assert (called.count("bad"), called.count("later"), called.count("dropped")) == (1, 2, 2)

    asyncio.run(play())


@pytest.mark.parametrize("name", ALL)
def test_a_job_whose_worker_was_killed_is_taken_over(name, database, tmp_path):
    async def play():
        async with stage(name, database, tmp_path) as on:
            hold = on.sink.hold(Point.CALLING, worker=1)
            await on.enqueue("j")
            victim = on.worker(1)
            await hold.reached(20)
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()
            await on.sink_sees_the_caller_gone()
            hold.release()
            on.worker(2)
            await on.settles(j="done")
            assert (on.told(Called), on.told(Applied)) == (["j", "j"], ["j"])

    asyncio.run(play())


@pytest.mark.parametrize(
    ("name", "fenced"),
    [("shell", False), ("shell_fenced", True), ("pasted", True), ("pgmq", False), *((name, True) for name in STARTERS)],
)
def test_a_late_result_is_refused_only_where_there_is_a_fence(name, fenced, database, tmp_path):
    async def play():
        async with stage(name, database, tmp_path) as on:
            first, second = on.sink.hold(Point.CALLING, worker=1), on.sink.hold(Point.CALLING, worker=2)
            await on.enqueue("j")
            slow = on.worker(1)
            await first.reached(20)
            os.killpg(slow.pid, signal.SIGSTOP)  # its renewals stop with it
            on.worker(2, lease=60)
            await second.reached(20)
            first.release()
            os.killpg(slow.pid, signal.SIGCONT)
            deadline, late = time.monotonic() + 2, {}
            while time.monotonic() < deadline and late.get("j", on.subject.jobs.deleted) != "done":
                late = await on.states()
                await asyncio.sleep(0.05)
            assert late.get("j", on.subject.jobs.deleted) == ("running" if fenced else "done")
            second.release()
            await on.settles(j="done")

    asyncio.run(play())


def test_our_own_worker_renews_while_it_waits(database, tmp_path):
    async def play():
        async with stage("pasted", database, tmp_path) as on:
            hold = on.sink.hold(Point.CALLING, worker=1)
            await on.enqueue("j")
            on.worker(1, lease=1, heartbeat=0.2)
            await hold.reached(20)
            on.worker(2, lease=1, heartbeat=0.2)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.5):
                    await on.record.wait_for(
                        lambda entry: isinstance(entry.what, Called) and entry.what.worker == 2,
                        within_seconds=30,
                        reason="a takeover that must not come",
                    )
            hold.release()
            await on.settles(j="done")

    asyncio.run(play())


def test_our_own_worker_hands_back_and_ends_at_sigterm(database, tmp_path):
    async def play():
        async with stage("pasted", database, tmp_path) as on:
            hold = on.sink.hold(Point.CALLING, worker=1)
            await on.enqueue("j")
            worker = on.worker(1)
            await hold.reached(20)
            worker.send_signal(signal.SIGTERM)
            await on.enqueue("k")
            hold.release()
            assert await asyncio.to_thread(worker.wait, 10) == 0
            assert await on.states() == {"j": "done", "k": "pending"}

    asyncio.run(play())


def test_our_own_worker_says_what_is_wrong_with_a_statement(database, tmp_path):
    async def play():
        async with stage("pasted", database, tmp_path) as on:
            async with await psycopg.AsyncConnection.connect(database.dsn(), autocommit=True) as connection:
                await connection.execute("alter table task rename column run_at to due")
            worker = on.worker(1)
            assert await asyncio.to_thread(worker.wait, 10) == 1
            (said,) = (tmp_path / "worker-1.log").read_text().splitlines()[:1]
            assert "claim is not a statement this database understands" in said
            assert "run_at" in said

    asyncio.run(play())
