"""One worker of the subject in a play: its process group, its wire, its stops."""

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.contracts.point import Point
from harness.contracts.problem import SubjectFailed
from harness.faults.network_cut import network_cut
from harness.faults.worker_paused import worker_paused
from harness.history.events import (
    BackendEnded,
    FaultLanded,
    Reached,
    Released,
    Signalled,
    WorkerExited,
    WorkerStarted,
)
from harness.history.recorder import DeadlinePassed
from harness.lab.stops import Evidence, GateStop, Stop, Surroundings, arm
from harness.postgres.clock import forget
from harness.processes.worker import WorkerProcess
from harness.wire.proxy import Proxy
from harness.wire.session import Session

if TYPE_CHECKING:
    from harness.lab.lab import Lab

MOST_RESTARTS = 20
_RESTART_DELAY_SECONDS = 0.2
_OURS = ("PG", "QUEUEPROOF_", "DATABASE_URL")


class LabWorker:
    """A worker that a scenario starts, stops at points, kills, pauses, cuts off. Made by ``Lab.worker``."""

    def __init__(
        self,
        lab: "Lab",
        number: int,
        *,
        slots: int,
        name: str,
        stops_at: tuple[Point, ...],
        env: dict[str, str],
    ) -> None:
        self._lab = lab
        self.number = number
        self.name = name
        self.slots = slots
        self.incarnation = 0
        self._env = env
        self._stops_at = stops_at
        self._stops: dict[Point, Stop] = {}
        self._stood: Evidence | None = None
        self._process: WorkerProcess | None = None
        self._proxy: Proxy | None = None
        self._supervised = True
        self._restarts: set[asyncio.Task[None]] = set()
        self.was_killed = False

    # -- life

    async def start(self) -> "LabWorker":
        """Arm the stops, then start the process. Starting again after its end is a new incarnation."""
        if self._lab.closing:
            return self  # a fault that heals by a start has come too late for one
        if self._proxy is None:
            self._proxy = await self._lab.open_proxy(self.number)
        self._supervised = True
        self.was_killed = False
        await self._arm_all()
        await self._launch()
        return self

    async def start_with(self, env: dict[str, str]) -> "LabWorker":
        """Start it, this once, with these variables besides its own."""
        usual = self._env
        self._env = usual | env
        try:
            return await self.start()
        finally:
            self._env = usual

    async def _arm_all(self) -> None:
        for point in self._stops_at:
            await self.stop_at(point)
        self._stops_at = ()

    async def stop_at(self, point: Point, *, statements: Mapping[str, int] | None = None) -> None:
        """Arm one more stop, now. ``statements``: see ``harness.lab.stops.arm``."""
        if self._proxy is None:
            self._proxy = await self._lab.open_proxy(self.number)
        around = Surroundings(
            self.number,
            self._proxy,
            self._lab.gates,
            self._lab.view,
            self._lab.sink,
            self._lab.recorder,
            self._lab.is_ours,
        )
        self._stops[point] = await arm(point, around, statements=statements)

    async def _launch(self) -> None:
        ground = self._lab.ground
        subject = ground.subject
        assert self._proxy is not None
        fill = ground.fill
        command = [fill(part, slots=self.slots) for part in subject.worker_command]
        target = ground.worker.via("127.0.0.1", self._proxy.port)
        env = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        env |= {"PATH": ground.path, "PYTHONUNBUFFERED": "1"}
        env |= target.env()
        env |= {
            "DATABASE_URL": target.url(),
            "QUEUEPROOF_SINK": self._lab.sink.url(self.number),
            "QUEUEPROOF_WORKER": self.name,
            "QUEUEPROOF_SLOTS": str(self.slots),
        }
        env |= {name: fill(value, slots=self.slots) for name, value in subject.worker_env.items()}
        env |= self._env
        process = WorkerProcess()
        self.incarnation += 1
        incarnation = self.incarnation
        process.on_exit = lambda code: self._exited(process, incarnation, code)
        try:
            await process.start(
                command, subject.folder, env, ground.folder / f"worker-{self.number}.log", ground.watchdog
            )
        except OSError as error:
            raise SubjectFailed(
                f"the worker of {subject.name} cannot be started: {' '.join(command)}: {error.strerror};"
                f" check subject.worker.command in {subject.folder / 'subject.toml'}"
            ) from error
        self._process = process
        self._lab.recorder.record(WorkerStarted(self.number, process.pid, incarnation))

    def _exited(self, process: WorkerProcess, incarnation: int, code: int) -> None:
        forget(process.pid)
        self._lab.recorder.record(WorkerExited(self.number, process.pid, incarnation, code))
        if self._supervised and self._lab.ground.subject.restarts == "always" and self.incarnation < MOST_RESTARTS:
            task = asyncio.get_running_loop().create_task(self._restart())
            self._restarts.add(task)
            task.add_done_callback(self._restarts.discard)

    async def _restart(self) -> None:
        """What its supervisor does, a moment after it exited."""
        await asyncio.sleep(_RESTART_DELAY_SECONDS)
        if self._supervised and not self._lab.closing:
            await self._launch()

    @property
    def running(self) -> bool:
        """Whether its process lives (a paused one does)."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The leader of its process group."""
        assert self._process is not None, f"worker {self.number} was not started"
        return self._process.pid

    @property
    def process_state(self) -> str:
        """What the process table says of its group."""
        return self._process.state() if self._process is not None else "gone"

    @property
    def paused(self) -> bool:
        """Whether we have stopped its process."""
        return self._lab.injury_of(worker_paused, self.number) is not None

    @property
    def cut_off(self) -> bool:
        """Whether we have cut its network."""
        return self._lab.injury_of(network_cut, self.number) is not None

    @property
    def idle_able(self) -> bool:
        """Whether it could take a job now, as far as we hold nothing of it."""
        return self.running and not self.paused and not self.cut_off and self._stood is None

    @property
    def at_work(self) -> bool:
        """Whether it may hold a lease and be neither held by us nor stopped."""
        return self.idle_able and self.incarnation > 0

    @property
    def tls_refused(self) -> bool:
        """Whether it has hung up because the wire speaks no TLS, and has never come through without."""
        return self._proxy is not None and self._proxy.tls_refused

    def tail(self) -> str:
        """The end of its own output."""
        return self._process.tail() if self._process else ""

    # -- points

    async def reached(self, point: Point, key: str | None = None, *, within_seconds: float = 15) -> Evidence:
        """Wait until the server (or the sink) shows the worker at a point it was armed for.

        Raises DeadlinePassed, or SubjectFailed when its process has exited meanwhile.
        """
        stop = self._stops[point]
        try:
            evidence = await stop.reached(within_seconds)
        except DeadlinePassed as error:
            if not self.running:
                raise SubjectFailed(
                    f"worker {self.number} has exited before it was {point}; its last output:\n{self.tail()}"
                ) from error
            raise
        if key is not None and evidence.key not in (None, key):
            raise DeadlinePassed(f"worker {self.number} is {evidence.point} with job {evidence.key!r}, not {key!r}")
        self._stood = evidence
        self._lab.recorder.record(
            Reached(evidence.point.value, self.number, evidence.pid, evidence.key, evidence.proof, evidence.statement)
        )
        return evidence

    async def gate_of(self, point: Point) -> GateStop | None:
        """The stop inside the server that it was armed with, once that is shut; None before."""
        stop = self._stops[point]
        assert isinstance(stop, GateStop), f"{point} is no gate"
        return stop if await stop.shut_when_sent() else None

    async def release(self, point: Point) -> None:
        """Let the worker go on from a point."""
        self._lab.recorder.record(Released(point.value, self.number))
        self._stood = None
        await self._stops.pop(point).release()

    async def lose_reply(self, point: Point) -> None:
        """Break the worker's connection with the reply still withheld: durable, and the worker never learns."""
        self._lab.recorder.record(
            FaultLanded("reply lost", f"connection broken at {point} with the reply withheld", self.number)
        )
        self._stood = None
        await self._stops.pop(point).sever()

    # -- injuries

    async def kill(self, *, backend: str = "ends") -> None:
        """SIGKILL its whole process group.

        ``backend="ends"``: what its backends were doing is rolled back (a parked one is terminated, since a server does not
        learn of a client's death while it waits). ``backend="lives"``: the orphan goes on when its gate opens.
        """
        self._supervised = False
        self.was_killed = True
        pids = [session.pid for session in self.sessions if session.pid]
        self.signal(signal.SIGKILL)
        await self._gone(5)
        if backend == "ends":
            for pid in pids:
                ended_by = await self._lab.end_backend(pid)
                self._lab.recorder.record(BackendEnded(self.number, pid, ended_by))
        self._stood = None
        for point, stop in list(self._stops.items()):
            self._lab.recorder.record(Released(point.value, self.number))
            await stop.release()
            del self._stops[point]

    async def pause(self) -> None:
        """SIGSTOP its whole process group, proven by the process table."""
        self._supervised = False
        await self._lab.begin(worker_paused, self)

    async def resume(self) -> None:
        """SIGCONT it."""
        await self._lab.heal(worker_paused, self)

    def ask_to_stop(self) -> None:
        """SIGTERM it, and do not wait."""
        self._supervised = False
        self.signal(signal.SIGTERM)

    async def terminate(self, *, within_seconds: float = 10) -> int | None:
        """SIGTERM it and wait; its exit code, or None when it did not end in time."""
        self._supervised = False
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return await self._process.wait(within_seconds)

    async def cut(self) -> None:
        """Cut its network, to the database and to the sink: bytes vanish, sockets stay open."""
        await self._lab.begin(network_cut, self)

    async def heal(self) -> None:
        """Mend its network: what was held arrives."""
        await self._lab.heal(network_cut, self)

    def signal(self, number: int) -> None:
        """Send a signal to its whole process group, and record that; nothing happens when it is gone."""
        assert self._process is not None, f"worker {self.number} was not started"
        if self._process.running:
            self._lab.recorder.record(Signalled(self.number, signal.Signals(number).name))
            self._process.signal(number)

    async def _gone(self, within_seconds: float) -> None:
        assert self._process is not None
        code = await self._process.wait(within_seconds)
        if code is None:
            raise DeadlinePassed(f"waited {within_seconds:g} s for worker {self.number} to die of SIGKILL")

    @property
    def wire(self) -> Proxy:
        """Its proxy, which is there from its first start on."""
        assert self._proxy is not None, f"worker {self.number} was not started"
        return self._proxy

    @property
    def sessions(self) -> list[Session]:
        """Its live wire connections."""
        return list(self._proxy.sessions) if self._proxy else []

    async def close(self) -> None:
        """End it, whatever state it is in, and its wire."""
        self._supervised = False
        for task in tuple(self._restarts):
            task.cancel()
        await asyncio.gather(*self._restarts, return_exceptions=True)
        try:
            if self._process is not None:
                await self._process.kill()
            for stop in self._stops.values():
                await stop.release()
            self._stops.clear()
        finally:
            if self._proxy is not None:
                await self._proxy.close()
