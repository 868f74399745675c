"""One play's world: its workers, jobs, sink, gates and waits. Opened before a scenario plays, closed whatever it did."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, cast

import psycopg

from harness.contracts.fault import Fault, Landed
from harness.contracts.point import Point
from harness.contracts.problem import EnvironmentFailed, SubjectFailed
from harness.contracts.subject import Subject, has_ended
from harness.faults import skewed_clock
from harness.faults.clock_moved import moved
from harness.faults.held_row import held_row
from harness.faults.injury import Injury
from harness.faults.locked_table import locked_table
from harness.faults.target import Target
from harness.history.events import (
    Attempted,
    Blocked,
    Enqueued,
    FaultLanded,
    Moved,
    Reached,
    Released,
    Saw,
    Waited,
)
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.lab.closing import abandon, settle
from harness.lab.ground import Ground
from harness.lab.takeover import superseded
from harness.lab.transactions import TransactionWatch
from harness.lab.watch import Watch
from harness.lab.worker import LabWorker
from harness.postgres.gates import Gates, Parked
from harness.postgres.statements import statement
from harness.postgres.truth import CLAIM_GATE, SNAPSHOT_GATE, TruthReader
from harness.postgres.view import ServerView
from harness.processes.command import run_command
from harness.sink.ledger import Kind
from harness.sink.sink import Sink
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy

CONNECT_SECONDS = 10
ENQUEUE_SECONDS = 20
RECONNECT_SECONDS = 90.0
ANSWERS_OF_A_LOOK = 4  # more than a worker is given as it starts
CLOCK_MARGIN_SECONDS = 0.05
LEASE_ENDED = "the lease was ended"
_LOOK_SECONDS = 0.01
_RECONNECT_EVERY_SECONDS = 0.05
NAME = "queueproof"


class Lab:
    """What a scenario is handed. All that happens through it is recorded."""

    def __init__(self, ground: Ground, recorder: PlayRecorder, *, learning: bool = False) -> None:
        self.ground = ground
        self.recorder = recorder
        self.learning = learning
        self.sink = Sink(cast("Kind", ground.subject.sink), recorder)
        self.workers: list[LabWorker] = []
        self.keys: list[str] = []
        self.closing = False
        self.known = KnownJobs()
        self.injuries: list[Injury] = []
        self._connections: list[psycopg.AsyncConnection] = []
        self.gates: Gates
        self.view: ServerView
        self.watch: Watch
        self._admin: psycopg.AsyncConnection
        self._producer: psycopg.AsyncConnection
        self._reconnecting = asyncio.Lock()

    @property
    def subject(self) -> Subject:
        """The queue under test."""
        return self.ground.subject

    # -- life

    async def __aenter__(self) -> Self:
        try:
            ground = self.ground
            self._admin = await self.connect("admin")
            self._producer = await self.connect("producer")
            self.gates = Gates(await self.connect("gates"))
            self.view = ServerView(await self.connect("view"), ground.subject.jobs, ground.table)
            truth = TruthReader(await self.connect("truth"))
            await self.sink.start()
            self.watch = Watch(self, truth)
            self.watch.start()
            TransactionWatch(self).start()
        except BaseException:
            await self._close_connections()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(interrupted=isinstance(error, asyncio.CancelledError))

    async def close(self, *, interrupted: bool = False) -> None:
        """Open the gates, end the workers, read truth to its end, look at the table a last time. Idempotent.

        A play that was interrupted is not judged: where the cluster goes with it, nothing is asked of the server any more.
        """
        if self.closing:
            return
        self.closing = True
        goes_with_it = self.ground.own_cluster is not None
        try:
            await (abandon(self) if interrupted and goes_with_it else self._settle())
        except asyncio.CancelledError:
            if goes_with_it:
                await abandon(self)
            raise
        finally:
            await self.watch.stop()
            await self.sink.close()
            await self._close_connections()

    async def _settle(self) -> None:
        await self._heal_all()
        if self.ground.own_cluster is not None:
            await self.reconnect()
        await settle(self, self._admin)
        for injury in self.injuries[::-1]:
            await self._heal(injury)

    async def connect(self, purpose: str) -> psycopg.AsyncConnection:
        """A connection of ours, as the owner, in autocommit; closed with the play."""
        try:
            connection = await psycopg.AsyncConnection.connect(
                self.ground.owner.dsn(),
                autocommit=True,
                application_name=f"{NAME} {purpose}",
                connect_timeout=CONNECT_SECONDS,
            )
        except psycopg.Error as error:
            raise EnvironmentFailed(f"cannot connect to {self.ground.owner.shown()}: {str(error).strip()}") from error
        self._connections.append(connection)
        return connection

    async def reconnect(self) -> None:
        """Replace those of our connections that a fault has ended. Raises DeadlinePassed when the server does not come back."""
        async with self._reconnecting:
            self._admin = await self._living(self._admin, "admin")
            self._producer = await self._living(self._producer, "producer")
            self.view.move_to(await self._living(self.view.connection, "view"))
            gates = await self._living(self.gates.connection, "gates")
            if gates is not self.gates.connection:
                await self.gates.move_to(gates)
            self.watch.truth.connection = await self._living(self.watch.truth.connection, "truth")

    async def _living(self, connection: psycopg.AsyncConnection, purpose: str) -> psycopg.AsyncConnection:
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                await connection.execute("select 1")
            except psycopg.OperationalError:
                if connection in self._connections:
                    self._connections.remove(connection)
                    await connection.close()
            else:
                return connection
            try:
                connection = await self.connect(purpose)
            except EnvironmentFailed as error:
                if time.monotonic() > deadline:
                    raise DeadlinePassed(
                        f"waited {RECONNECT_SECONDS:g} s for the server to be reachable again"
                    ) from error
                await asyncio.sleep(_RECONNECT_EVERY_SECONDS)

    async def _close_connections(self) -> None:
        for connection in self._connections:
            await connection.close()
        self._connections.clear()

    async def open_proxy(self, worker: int) -> Proxy:
        """The wire of one worker; it learns statements while the lab does."""
        owner = self.ground.owner
        proxy = Proxy(worker, owner.host, owner.port, self.recorder, self.ground.book, self.known)
        proxy.learning = self.learning
        await proxy.start()
        return proxy

    # -- workers and jobs

    def worker(
        self,
        *,
        slots: int = 1,
        stops_at: Point | Iterable[Point] = (),
        same_id_as: LabWorker | None = None,
        env: dict[str, str] | None = None,
    ) -> LabWorker:
        """A worker, not started yet. ``stops_at`` is armed before it starts."""
        number = len(self.workers) + 1
        points = (stops_at,) if isinstance(stops_at, Point) else tuple(stops_at)
        name = same_id_as.name if same_id_as else f"w{number}"
        worker = LabWorker(self, number, slots=slots, name=name, stops_at=points, env=env or {})
        self.workers.append(worker)
        return worker

    def is_ours(self, key: str | None) -> bool:
        """Whether we enqueued this key."""
        return key is not None and key in self.keys

    async def enqueue(
        self, jobs: int | Sequence[str] = 1, *, priority: int | None = None, group: str | None = None
    ) -> list[str]:
        """Enqueue jobs, by number or by key, and wait for the acknowledgements. Returns their keys."""
        if isinstance(jobs, int):
            first = len(self.keys) + 1
            keys = [f"job-{first + i}" for i in range(jobs)]  # each play has a database and a sink of its own
        else:
            keys = list(jobs)
        # Known before they exist, so that gates and judgements never take a row of ours for a stranger's.
        self.keys += keys
        for key in keys:
            await self._producer.execute("insert into queueproof.enqueued (key) values (%s)", (key,))
        if self.subject.enqueue_sql is not None:
            for key in keys:
                await self._enqueue_by_sql(key, priority, group)
        else:
            await self._enqueue_by_command(keys)
        return keys

    async def _enqueue_by_sql(self, key: str, priority: int | None, group: str | None) -> None:
        await self.say_enqueue(self._producer, key, priority, group)
        self.recorder.record(Enqueued(key, priority, group))

    @property
    def producer_pid(self) -> int:
        """The backend through which jobs are enqueued by a statement."""
        return self._producer.info.backend_pid

    async def say_enqueue(
        self, connection: psycopg.AsyncConnection, key: str, priority: int | None = None, group: str | None = None
    ) -> None:
        """Say the subject's enqueue statement on a connection of ours. Nothing is recorded: who commits it knows what it was."""
        assert self.subject.enqueue_sql is not None
        values = {"key": key, "priority": priority, "group": group, "run_at": None, "tenant": None}
        try:
            await connection.execute(self.subject.enqueue_sql, values)
        except (psycopg.Error, KeyError) as error:
            raise SubjectFailed(
                f"enqueue of {self.subject.name} failed for key {key[:80]!r}: {str(error).strip()};"
                " check subject.enqueue.sql"
            ) from error

    async def _enqueue_by_command(self, keys: Sequence[str]) -> None:
        ground = self.ground
        owner = ground.owner
        command = [ground.fill(part, slots=1) for part in self.subject.enqueue_command]
        env = {"PATH": ground.path, **owner.env(), "DATABASE_URL": owner.url()}
        done = await run_command(
            f"subject.enqueue.command of {self.subject.name}",
            command,
            cwd=self.subject.folder,
            env=env,
            watchdog=ground.watchdog,
            within_seconds=ENQUEUE_SECONDS,
            said="".join(json.dumps({"key": key}) + "\n" for key in keys).encode(),
        )
        acknowledged = [line for line in done.out.decode("utf-8", "replace").splitlines() if line.strip()]
        if done.code != 0 or len(acknowledged) < len(keys):
            raise SubjectFailed(
                f"enqueue of {self.subject.name} acknowledged {len(acknowledged)} of {len(keys)} keys, one line each is"
                f" expected (exit code {done.code}); its error output:\n{done.errors}"
            )
        for key in keys:
            self.recorder.record(Enqueued(key))

    # -- waits

    async def until(self, wanted: Callable[[Any], bool], *, within_seconds: float, reason: str, since: int = 0) -> Any:
        """The first event after entry ``since`` that is wanted. Raises DeadlinePassed with the reason."""
        entry = await self.recorder.wait_for(
            lambda entry: wanted(entry.what), within_seconds=within_seconds, reason=reason, since=since
        )
        return entry.what

    async def eventually(self, check: Callable[[], object], *, within_seconds: float, reason: str) -> None:
        """Wait until a check of ours is true. Raises DeadlinePassed with the reason."""
        deadline = time.monotonic() + within_seconds
        while not check():
            if time.monotonic() > deadline:
                raise DeadlinePassed(f"waited {within_seconds:g} s for {reason}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def eventually_shown(
        self, look: Callable[[], Awaitable[object]], *, within_seconds: float, reason: str
    ) -> Any:
        """Wait until a look at the server shows something true, and return it. Raises DeadlinePassed with the reason."""
        deadline = time.monotonic() + within_seconds
        while not (shown := await look()):
            if time.monotonic() > deadline:
                raise DeadlinePassed(f"waited {within_seconds:g} s for {reason}")
            await asyncio.sleep(_LOOK_SECONDS)
        return shown

    @property
    def takeover_seconds(self) -> float:
        """How long we give a takeover before we say that it did not come: twice what is declared, and some machine."""
        declared = self.subject.takeover_within_seconds or (self.subject.lease_seconds or 2) * 2
        return declared * 2 + 5

    async def claimed(self, key: str, *, by: LabWorker | None = None, within_seconds: float | None = None) -> Moved:
        """Wait until truth shows a grant of the job."""
        who = f"worker {by.number}" if by else "a worker"
        return await self.until(  # type: ignore[no-any-return]
            lambda event: (
                isinstance(event, Moved)
                and event.change == "claim"
                and event.key == key
                and (by is None or event.worker == by.number)
            ),
            within_seconds=within_seconds or self.takeover_seconds,
            reason=f"{who} to be granted job {key!r}",
        )

    async def granted(self, key: str, *, by: LabWorker | None = None) -> bool:
        """Whether an idle worker is granted a job that nobody holds, within a takeover's time; judged by that name later."""
        began = time.monotonic()
        try:
            await self.claimed(key, by=by)
        except DeadlinePassed:
            self._waited(f"job {key!r}, which is free, to be granted", began, met=False, key=key)
            return False
        self._waited(f"job {key!r}, which is free, to be granted", began, met=True, key=key)
        return True

    async def taken_over(self, key: str, *, from_worker: LabWorker) -> Moved:
        """Wait until another worker is granted the job after ``from_worker`` was."""

        def after_its_grant(event: object) -> bool:
            return isinstance(event, Moved) and event.change == "claim" and event.key == key

        first = await self.claimed(key, by=from_worker, within_seconds=5)
        began = time.monotonic()
        try:
            return await self.until(  # type: ignore[no-any-return]
                lambda event: after_its_grant(event) and event.worker != from_worker.number and event.seq > first.seq,
                within_seconds=self.takeover_seconds,
                reason=f"job {key!r} to be taken over from worker {from_worker.number}",
            )
        except DeadlinePassed:
            self._waited(f"job {key!r} to be taken over", began, met=False)
            raise

    def state_of(self, key: str) -> str | None:
        """The job's state by truth, as far as it was read; None before its enqueue was."""
        for entry in reversed(self.recorder.entries):
            if isinstance(entry.what, Moved) and entry.what.key == key:
                return entry.what.new.state if entry.what.new else None
        return None

    async def drained(self, keys: Sequence[str] | None = None, *, within_seconds: float | None = None) -> bool:
        """Give the idle workers a stated time to end every job; whether they did is recorded, and judged later."""
        wanted = list(keys if keys is not None else self.keys)
        within = within_seconds if within_seconds is not None else self.takeover_seconds + 0.5 * len(wanted)
        began = time.monotonic()

        def ended() -> bool:
            states = {e.what.key: e.what.new for e in self.recorder.entries if isinstance(e.what, Moved)}
            return all((row := states.get(key)) is not None and has_ended(row.state) for key in wanted)

        try:
            await self.eventually(ended, within_seconds=within, reason="every job to end")
            met = True
        except DeadlinePassed:
            met = False
        self._waited("1 job to end" if len(wanted) == 1 else f"{len(wanted)} jobs to end", began, met=met)
        return met

    def _waited(self, what: str, began: float, *, met: bool, key: str | None = None) -> None:
        idle = sum(worker.idle_able for worker in self.workers)
        self.recorder.record(Waited(what, round(time.monotonic() - began, 3), idle, met, key))

    async def database_now_us(self) -> int:
        """The database's clock, microseconds since the epoch."""
        cursor = await self._admin.execute("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])

    async def lease_over(self, key: str) -> None:
        """Wait until the lease of the job's latest grant or renewal has ended by the database's clock.

        A queue without a readable lease is given its declared lease instead. Where the clock can be moved, it is.
        """
        leases = [
            entry.what.new.lease_us
            for entry in self.recorder.entries
            if isinstance(entry.what, Moved) and entry.what.key == key and entry.what.new and entry.what.new.lease_us
        ]
        seconds = self.subject.lease_seconds or 0
        until = leases[-1] if leases else await self.database_now_us() + round(seconds * 1_000_000)

        if await self._moved_clock_past(until):
            return

        async def is_over() -> bool:
            return await self.database_now_us() > until

        await self.eventually_shown(is_over, within_seconds=seconds + 10, reason=f"the lease of job {key!r} to end")

    async def _moved_clock_past(self, until_us: int) -> bool:
        """Move the server's clock past a moment, if we may. It ends every lease: nobody may be at work meanwhile."""
        cluster = self.ground.own_cluster
        if cluster is None or cluster.clock is None:
            self.saw(LEASE_ENDED, "by waiting, because this server's clock is not moved")
            return False
        at_work = [worker for worker in self.workers if worker.at_work]
        if at_work:
            raise DeadlinePassed(
                f"the clock cannot be moved while worker {at_work[0].number} is neither held nor stopped:"
                " it would end that worker's leases as well"
            )
        seconds = (until_us - await self.database_now_us()) / 1_000_000 + CLOCK_MARGIN_SECONDS
        if seconds > 0:
            told = await moved(self.target(), seconds)
            self.recorder.record(FaultLanded("clock advanced", told))
            self.saw(LEASE_ENDED, f"by moving the server's clock: {told}")
        return True

    async def all_reached(self, point: Point, workers: Sequence[LabWorker], *, within_seconds: float) -> None:
        """Wait until one look at the server shows each of these workers parked at a gate, and record that look."""
        gate = SNAPSHOT_GATE if point is Point.SNAPSHOT else CLAIM_GATE
        numbers = [worker.number for worker in workers]

        async def all_parked() -> list[tuple[Parked, str]] | None:
            stops = [await worker.gate_of(point) for worker in workers]
            for worker in workers:
                if not worker.running:
                    raise SubjectFailed(
                        f"worker {worker.number} has exited before it was {point}; its last output:\n{worker.tail()}"
                    )
            if not all(stops):
                return None
            looked = await self.gates.parked(gate, numbers)
            shown: list[tuple[Parked, str]] = []
            for number, stop in zip(numbers, stops, strict=True):
                assert stop is not None
                here = [(backend, stop.statement_of(backend)) for backend in looked if backend.worker == number]
                here = [each for each in here if each[1] or not stop.chooses]
                if not here:
                    return None
                shown.append(here[0])
            return shown

        shown = await self.eventually_shown(
            all_parked, within_seconds=within_seconds, reason=f"one look to show {len(workers)} backends at {point}"
        )
        pids = ", ".join(str(backend.pid) for backend, _ in shown)
        # One proof for all of them: it is one look that shows them together.
        proof = f"one look at the server shows {len(shown)} backends waiting at one gate: {pids}"
        for backend, standing_in in shown:
            self.recorder.record(Reached(point.value, backend.worker, backend.pid, None, proof, standing_in))

    async def release_together(self, point: Point, workers: Sequence[LabWorker]) -> None:
        """Open a gate for all of them by one statement."""
        gate = SNAPSHOT_GATE if point is Point.SNAPSHOT else CLAIM_GATE
        await self.gates.open_together(gate, [worker.number for worker in workers])
        for worker in workers:
            self.recorder.record(Released(point.value, worker.number))

    async def superseded(
        self, first: LabWorker, key: str, *, release: Point, by: str = "pause", same_id: bool = False
    ) -> LabWorker:
        """Silence a worker past its lease, let another take over, then let the first act late. See ``lab.takeover``."""
        return await superseded(self, first, key, release=release, by=by, same_id=same_id)

    async def ended_before(self, key: str, worker: LabWorker, point: Point) -> bool:
        """Wait until the job has ended (True) or the worker stands at the point (False), whichever is first."""
        began = time.monotonic()
        reached = asyncio.ensure_future(worker.reached(point, key, within_seconds=self.takeover_seconds))
        try:
            while not reached.done():
                state = self.state_of(key)
                if state is not None and has_ended(state):
                    return True
                await asyncio.sleep(_LOOK_SECONDS)
            try:
                await reached
            except DeadlinePassed:
                self._waited(f"job {key!r} to end, or to be called for once more", began, met=False)
                raise
            return False
        finally:
            reached.cancel()
            await asyncio.gather(reached, return_exceptions=True)

    async def has_looked(self, worker: LabWorker, *, within_seconds: float = 10) -> bool:
        """Wait until a worker has looked for work once, as a statement known to claim shows. False when it was not seen to.

        Of a queue whose looks mark nothing when they find nothing, no look of the calm run was such a statement either.
        There, the worker has looked once it was answered several times, for longer than two polls.
        """
        answers: list[tuple[float, int]] = []  # when how many were first seen

        def claims(event: object) -> bool:
            return isinstance(event, Attempted) and event.worker == worker.number and "claim" in event.changes

        def looked() -> bool:
            if any(claims(entry.what) for entry in self.recorder.entries):
                return True
            if self.ground.book.shows_idle_looks:
                return False
            count = sum(session.answers for session in worker.sessions)
            if count and (not answers or count > answers[-1][1]):
                answers.append((time.monotonic(), count))
            apart = answers[-1][0] - answers[0][0] if answers else 0.0
            return len(answers) >= ANSWERS_OF_A_LOOK and apart > 2 * (self.subject.poll_seconds or 1.0)

        try:
            await self.eventually(
                looked, within_seconds=within_seconds, reason=f"worker {worker.number} to look for work"
            )
        except DeadlinePassed:
            return False
        return True

    async def watch_for(self, seconds: float, what: str) -> None:
        """Let a stated time go by in which something must not happen; recorded as a wait that was met."""
        began = time.monotonic()
        await asyncio.sleep(seconds)
        self._waited(what, began, met=True)

    async def stays_quiet(self) -> None:
        """Watch for a while that nothing more is done to jobs that have ended."""
        await self.watch_for((self.subject.lease_seconds or 2.0) / 2 + 0.5, "whether anything more happens")

    async def forget_statistics(self) -> None:
        """Analyse the subject's table as it is now, and let no autovacuum renew that: the planner goes by it from here on."""
        cursor = await self._admin.execute(statement("list_leaves"), {"tables": list(self.ground.table.partitions)})
        for (leaf,) in await cursor.fetchall():
            await self._admin.execute(f"alter table {leaf} set (autovacuum_enabled = false)")
        await self._admin.execute(f"analyze {self.ground.table.name}")

    # -- faults

    def target(self, *workers: LabWorker, key: str | None = None) -> Target:
        """Where a fault is aimed: these workers above all, or else those that run."""
        ground = self.ground
        return Target(
            recorder=self.recorder,
            owner=ground.owner,
            worker=ground.worker,
            mapping=self.subject.jobs,
            table=ground.table,
            sink=self.sink,
            victims=workers or [worker for worker in self.workers if worker.running],
            everyone=self.workers,
            worker_of=self.worker_of,
            server=ground.own_cluster,
            not_ours=ground.not_ours,
            key=key,
            lease_seconds=self.subject.lease_seconds,
            watchdog=ground.watchdog,
            folder=ground.folder.resolve(),  # for processes that stand elsewhere
        )

    async def begin(
        self, fault: Fault[Target], *workers: LabWorker, key: str | None = None, at_most_seconds: float | None = None
    ) -> Injury:
        """Inject a fault and return when it has landed. It is healed with the play at the latest."""
        target = self.target(*workers, key=key)
        injury = await Injury.begin(fault, target, lasts_at_most_seconds=at_most_seconds)
        self.injuries.append(injury)
        return injury

    async def heal(self, fault: Fault[Target], *workers: LabWorker) -> None:
        """Heal a fault that was begun, of these workers or at all."""
        numbers = {worker.number for worker in workers}
        for injury in [each for each in self.injuries if each.fault is fault]:
            if not numbers or injury.landed.worker in numbers:
                await self._heal(injury)

    @asynccontextmanager
    async def injured(
        self, fault: Fault[Target], *workers: LabWorker, key: str | None = None, at_most_seconds: float | None = None
    ) -> AsyncIterator[Landed]:
        """A fault for the time of a block."""
        injury = await self.begin(fault, *workers, key=key, at_most_seconds=at_most_seconds)
        try:
            yield injury.landed
        finally:
            await self._heal(injury)

    def injury_of(self, fault: Fault[Target], worker: int) -> Injury | None:
        """The fault of this kind that a worker suffers from now."""
        for injury in self.injuries:
            if injury.fault is fault and injury.landed.worker == worker and not injury.healed:
                return injury
        return None

    async def _heal(self, injury: Injury) -> None:
        if injury in self.injuries:
            self.injuries.remove(injury)
        await injury.heal()

    async def _heal_all(self) -> None:
        """Heal what the story has left. What was done to a process goes with the process: none must act once more."""
        for injury in self.injuries[::-1]:
            if injury.fault.strikes not in {"worker", "clock"}:
                await self._heal(injury)

    @asynccontextmanager
    async def row_held(self, key: str) -> AsyncIterator[None]:
        """A long transaction of ours holds the job's row."""
        async with self.injured(held_row, key=key):
            yield

    @asynccontextmanager
    async def table_locked(self) -> AsyncIterator[None]:
        """A transaction of ours holds the whole table, as a migration does."""
        async with self.injured(locked_table):
            yield

    async def blocked_on_table(self, worker: LabWorker, *, within_seconds: float = 10) -> None:
        """Wait until the server shows the worker waiting behind our table lock."""
        await self.until(
            lambda event: isinstance(event, Blocked) and event.worker == worker.number,
            within_seconds=within_seconds,
            reason=f"worker {worker.number} to wait behind the table lock",
        )

    async def waits_behind(self, pid: int, worker: LabWorker, *, reason: str, within_seconds: float = 5) -> str:
        """Wait until the server shows a backend of this worker waiting for a lock of that backend; what it shows."""

        async def waiting() -> str | None:
            for session in worker.sessions:
                backend = await self.view.backend(session.pid)
                if backend is not None and pid in backend.blocked_by:
                    return backend.told()
            return None

        return str(await self.eventually_shown(waiting, within_seconds=within_seconds, reason=reason))

    def worker_of(self, pid: int) -> int:
        """The number of the worker that owns a backend, 0 when it is none of ours."""
        for worker in self.workers:
            if any(session.pid == pid for session in worker.sessions):
                return worker.number
        return 0

    @staticmethod
    def skewed_clock(offset_seconds: int) -> dict[str, str]:
        """The environment of a worker whose own clock is off."""
        return skewed_clock.environment(offset_seconds)

    async def clock_is_off(self, worker: LabWorker, offset_seconds: int) -> None:
        """Prove from the process table that the worker's clock is off, and record it."""

        async def proof() -> str | None:
            return skewed_clock.landed(worker.pid)

        shown = await self.eventually_shown(
            proof, within_seconds=5, reason=f"libfaketime in the process of worker {worker.number}"
        )
        self.recorder.record(FaultLanded("clock skewed", f"{shown}, {offset_seconds:+d} s", worker.number))

    async def execute(self, query: str, values: dict[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement as the owner, in autocommit; its rows."""
        cursor = await self._admin.execute(query, values)
        return await cursor.fetchall() if cursor.description else []

    async def end_backend(self, pid: int) -> str:
        """Make sure that a backend is gone: "itself" when it had ended already, "harness" when we terminated it."""
        try:
            return await self._end_backend(pid)
        except psycopg.OperationalError:  # the fault that ended others' connections may have ended ours
            await self.reconnect()
            return await self._end_backend(pid)

    async def _end_backend(self, pid: int) -> str:
        if await self.view.backend(pid) is None:
            return "itself"
        await self._admin.execute("select pg_terminate_backend(%s)", (pid,))

        async def gone() -> bool:
            return await self.view.backend(pid) is None

        await self.eventually_shown(gone, within_seconds=5, reason=f"backend {pid} to end")
        return "harness"

    def saw(self, what: str, evidence: str, *, worker: LabWorker | None = None, key: str | None = None) -> None:
        """Record an observation of the scenario's own, with what shows it."""
        self.recorder.record(Saw(what, evidence, worker.number if worker else 0, key))
