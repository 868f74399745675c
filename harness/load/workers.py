"""The subject's workers in a load run: real processes straight on the server, or other machines' that join by themselves."""

import asyncio
import os
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed, SubjectFailed
from harness.contracts.subject import Subject
from harness.load.plan import Scaled
from harness.postgres.address import Address
from harness.processes.placeholders import fill, plain
from harness.processes.watchdog import Watchdog
from harness.processes.worker import WorkerProcess

_OURS = ("PG", "QUEUEPROOF_", "DATABASE_URL")
_LOOK_SECONDS = 0.05
_RESTART_SECONDS = 0.2
JOIN_SECONDS = 600.0


@dataclass(frozen=True)
class Place:
    """Where workers work: the database as their role sees it, and the sink's address for each of them."""

    subject: Subject
    database: Address
    sinks: tuple[str, ...]  # worker n has the n-th, from 1
    folder: Path
    watchdog: Watchdog
    path: str


class Workers:
    """The slots, spread over processes as evenly as they go."""

    def __init__(self, place: Place, scaled: Scaled) -> None:
        self._place, self._scaled = place, scaled
        plan = scaled.plan
        share, rest = divmod(plan.slots, plan.workers)
        self.slots = [share + (n < rest) for n in range(plan.workers)]
        self.processes: list[WorkerProcess] = []
        self._supervised = False
        self._restarts: set[asyncio.Task[None]] = set()
        self.restarted = 0

    @property
    def pids(self) -> list[int]:
        """The leaders of those that run here."""
        return [process.pid for process in self.processes if process.running]

    @property
    def names(self) -> list[str]:
        """As they are told, and as the table may show them."""
        return [self._name(n) for n in range(1, len(self.slots) + 1)]

    async def start(self) -> None:
        """All of them."""
        self._supervised = True
        self.processes = [WorkerProcess(f"worker {n + 1}") for n in range(len(self.slots))]
        for n in range(len(self.slots)):
            await self._launch(n)

    async def kill(self) -> None:
        """SIGKILL all of them: what they had in hand is left as it is."""
        self._supervised = False
        for task in self._restarts:
            task.cancel()
        await asyncio.gather(*(process.kill() for process in self.processes if process.running))

    async def _launch(self, n: int) -> None:
        process, subject = self.processes[n], self._place.subject
        process.on_exit = lambda code: self._exited(n, code)
        command = [self.filled(part, n) for part in subject.worker_command]
        log = self._place.folder / f"worker-{n + 1}.log"
        await process.start(command, subject.folder, self.environment(n), log, self._place.watchdog)

    def environment(self, n: int) -> dict[str, str]:
        """What worker n (from 0) finds in its environment, ours and our user's."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        own = {name: self.filled(value, n) for name, value in self._place.subject.worker_env.items()}
        return (
            inherited
            | {"PATH": self._place.path, "PYTHONUNBUFFERED": "1", "QUEUE_LOG": "WARNING"}
            | own
            | self.given(n)
        )

    def given(self, n: int) -> dict[str, str]:
        """The variables that are ours to give, those of the plan last."""
        plan, database = self._scaled.plan, self._place.database
        return (
            database.env()
            | {
                "DATABASE_URL": database.url(),
                "QUEUEPROOF_SINK": self._place.sinks[n],
                "QUEUEPROOF_WORKER": self._name(n + 1),
                "QUEUEPROOF_SLOTS": str(self.slots[n]),
                "QUEUEPROOF_BACKOFF": f"{plain(self._scaled.backoff_seconds)}s",
                "QUEUEPROOF_BACKOFF_CAP": f"{plain(self._scaled.backoff_cap_seconds)}s",
            }
            | ({} if plan.batch is None else {"QUEUEPROOF_BATCH": str(plan.batch)})
            | ({} if plan.prefetch is None else {"QUEUEPROOF_PREFETCH": str(plan.prefetch)})
            | dict(plan.worker_env)
        )

    def command_to_copy(self, n: int) -> str:
        """For another machine, in the subject's folder there: the three variables that a worker needs, and the program."""
        wanted = ("DATABASE_URL", "QUEUEPROOF_SINK", "QUEUEPROOF_SLOTS")
        given = self.given(n)
        variables = " ".join(f"{name}={shlex.quote(given[name])}" for name in wanted)
        own = " ".join(
            f"{name}={shlex.quote(self.filled(value, n))}" for name, value in self._place.subject.worker_env.items()
        )
        program = shlex.join(self._place.subject.worker_command).replace("'{python}'", "python3")
        return f"{variables} {own} {program}".replace("  ", " ")

    def filled(self, template: str, n: int) -> str:
        """A part of the subject's command or environment, with this run's values."""
        scaled = self._scaled
        return fill(
            self._place.subject,
            template,
            slots=self.slots[n],
            lease=scaled.lease_seconds,
            heartbeat=scaled.heartbeat_seconds,
            poll=scaled.poll_seconds,
        )

    @staticmethod
    def _name(n: int) -> str:
        return f"w{n}"

    def _exited(self, n: int, code: int) -> None:
        """What its supervisor would do. A worker that ends although nobody told it to is counted."""
        if not self._supervised:
            return
        if self._place.subject.restarts != "always":
            return
        self.restarted += 1
        task = asyncio.get_running_loop().create_task(self._restart(n))
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)
        del code

    async def _restart(self, n: int) -> None:
        await asyncio.sleep(_RESTART_SECONDS)
        if self._supervised:
            await self._launch(n)

    def check(self) -> None:
        """Raises SubjectFailed when a worker has ended that nobody restarts."""
        if not self._supervised or self._place.subject.restarts == "always":
            return
        for process in self.processes:
            if not process.running:
                raise SubjectFailed(
                    f"{process.name} ended by itself during the load run; the end of its output:\n{process.tail()}"
                )


class Joined:
    """Workers on other machines: known by the calls they make and by their sessions in the database."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.sessions = 0
        self.most_sessions = 0
        self.callers: dict[int, float] = {}
        self.left: list[str] = []

    def saw_sessions(self, sessions: int) -> None:
        """A sampler's count of the worker role's sessions."""
        self.sessions = sessions
        if self.sessions < self.most_sessions and self.sessions < self.wanted:
            self.left.append(f"{self.most_sessions} worker sessions became {self.sessions}")
        self.most_sessions = max(self.most_sessions, self.sessions) if self.sessions >= self.wanted else self.sessions

    def saw_call(self, worker: int, at: float) -> None:
        """A call at the sink."""
        self.callers[worker] = at

    @property
    def complete(self) -> bool:
        """Whether each stated worker has called, or as many sessions are there."""
        return len(self.callers) >= self.wanted or self.sessions >= self.wanted

    async def wait(self, within_seconds: float = JOIN_SECONDS) -> None:
        """Until they are there. Raises EnvironmentFailed when some never came."""
        deadline = time.monotonic() + within_seconds
        while not self.complete:
            if time.monotonic() > deadline:
                raise EnvironmentFailed(
                    f"waited {within_seconds:g} s for {self.wanted} workers to join; {max(len(self.callers), self.sessions)} did"
                )
            await asyncio.sleep(_LOOK_SECONDS)
