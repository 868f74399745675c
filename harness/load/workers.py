"""The subject's workers in a load run: real processes straight on the server, or other machines' that join by themselves."""

import asyncio
import math
import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.problem import SubjectFailed
from harness.contracts.subject import Subject, plain
from harness.load.plan import Scaled
from harness.postgres.address import Address
from harness.processes.placeholders import fill
from harness.processes.watchdog import Watchdog
from harness.processes.worker import WorkerProcess

_OURS = ("PG", "QUEUEPROOF_", "DATABASE_URL")
_RESTART_SECONDS = 0.2
JOIN_SECONDS = 600.0
LEFT_SECONDS = 2.0  # fewer sessions for so long: not one that reconnects


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
        """For another machine, in the subject's folder there: the three variables that a worker needs, those that this plan
        sets, and the program.
        """
        subject, given = self._place.subject, self.given(n)
        wanted = ("DATABASE_URL", "QUEUEPROOF_SINK", "QUEUEPROOF_SLOTS")
        variables = {name: given[name] for name in wanted}
        # Subjects know their own places by paths of this machine: there they are seen from the subject's folder.
        own = {name: self.filled(value, n, elsewhere=True) for name, value in subject.worker_env.items()}
        planned = ("QUEUEPROOF_BACKOFF", "QUEUEPROOF_BACKOFF_CAP", "QUEUEPROOF_BATCH", "QUEUEPROOF_PREFETCH")
        variables |= own | {name: given[name] for name in (*planned, *self._scaled.plan.worker_env) if name in given}
        told = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        return f"{told} {shlex.join(self.filled(part, n, elsewhere=True) for part in subject.worker_command)}"

    def filled(self, template: str, n: int, *, elsewhere: bool = False) -> str:
        """A part of the subject's command or environment, with this run's values; ``elsewhere``: for another machine."""
        scaled, subject = self._scaled, self._place.subject
        places: dict[str, str] = {}
        if elsewhere:
            seen = [os.path.relpath(layer, subject.folder) for layer in subject.layers]
            places = {
                "python": "python3", "folder": ".", "base": seen[0], "layers": os.pathsep.join(reversed(seen)),
            }  # fmt: skip
        return fill(
            subject,
            template,
            slots=self.slots[n],
            lease=scaled.lease_seconds,
            heartbeat=scaled.heartbeat_seconds,
            poll=scaled.poll_seconds,
            **places,
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
    """Workers on other machines. Each has an address of its own at the sink: it is there once a call has come at it.

    One that leaves is missed by its sessions, and in the end by its silence.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.left: list[str] = []
        self._usual: int | None = None
        self._fewer_since: float | None = None
        self._seen_at = -math.inf

    def missing(self, callers: Collection[int]) -> list[int]:
        """Which of them have not called."""
        return [n for n in range(1, self.wanted + 1) if n not in callers]

    def settle(self, sessions: int) -> None:
        """So many sessions the worker role has when all are there."""
        self._usual = sessions

    def reconnecting(self) -> None:
        """The server was stopped: fewer sessions say nothing until as many as before are back."""
        self._fewer_since, self._seen_at = None, math.inf

    def saw_sessions(self, sessions: int, at: float) -> str | None:
        """A sample of them. Returns what it tells when a worker has just been found to have left."""
        if self._usual is None or self.left:
            return None
        if sessions >= self._usual * (1 - 0.5 / self.wanted):
            self._fewer_since, self._seen_at = None, at
            return None
        if at <= self._seen_at:
            return None
        self._fewer_since = at if self._fewer_since is None else self._fewer_since
        if at - self._fewer_since < LEFT_SECONDS:
            return None
        self.left.append(f"of {self._usual} worker sessions {sessions} were left, for {LEFT_SECONDS:g} s")
        return self.left[-1]

    def judge_silence(self, callers: Collection[int]) -> None:
        """At the end: who has not called, although others have."""
        if callers:
            self.left += [f"worker {n} made no call after recovery began" for n in self.missing(callers)]
