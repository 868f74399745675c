"""The load run itself: warm-up until steady, steady, an outage, recovery with inflow going on until current again."""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg

from harness.capacity.band import judging_window_seconds
from harness.capacity.sizing import size
from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.contracts.subject import Subject
from harness.load.measured import OUTAGE, RECOVERY, STEADY, WARM_UP, Measured, Phases, Steady
from harness.load.outside import Outside
from harness.load.plan import LoadPlan
from harness.load.producer import BySql, Orders, sender_for
from harness.load.producing import Produced, ProducerProcess, Production
from harness.load.samplers import HostMetrics, Samplers
from harness.load.schedule import due_times
from harness.load.steadiness import judge_steadiness
from harness.load.table import Ended, LoadTable
from harness.load.trace import DIGITS, Look, Trace
from harness.load.workers import JOIN_SECONDS, Joined, Place, Workers
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import ServerOption
from harness.postgres.owned import OwnedCluster
from harness.processes.watchdog import Watchdog
from harness.run.provision import Site, prepare
from harness.sink import Sink

TICK_SECONDS = 0.05
PROGRESS_SECONDS = 1.0
LEAD_SECONDS = 2.5  # processes start meanwhile
LOOPBACK = ("127.0.0.1", "::1")
LONGEST_WARM_UP_WINDOWS = 12
SMALLEST_WINDOW_JOBS = 150
WINDOW_SERVICES = 12
SHORTEST_WINDOW_SECONDS = 2.0
STUCK_WATCH_SECONDS = 5.0
EXTRA_SECONDS = 10.0
END_SECONDS = 20.0
GREETING_SECONDS = 1.0
CALLS_PER_SLOT_TO_MISS = 5  # a worker with nothing among so many is not there


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for people who watch."""

    phase: str
    at: float
    arrivals_per_second: float
    completions_per_second: float
    backlog: int
    oldest_age_seconds: float
    told: str


@dataclass(frozen=True)
class Listener:
    """Told of what goes on."""

    doing: Callable[[str], None]
    progress: Callable[[Progress], None]


@dataclass(frozen=True)
class LoadOptions:
    """What, where and how."""

    subject: Subject
    plan: LoadPlan
    server: ServerOption
    folder: Path
    seed: int
    allow_existing: bool = False
    sink_host: str = LOOPBACK[0]
    sink_port: int = 0
    host_metrics: str | None = None
    durable: bool = True  # False: a server of ours does without fsync, and then the run says nothing about disks
    front: Callable[[], Production] = ProducerProcess


async def run_load(options: LoadOptions, listener: Listener) -> Measured:
    """Run it. Raises a Problem when there is nothing to measure."""
    if options.host_metrics is not None:
        async with contextlib.aclosing(HostMetrics(options.host_metrics)) as host:
            await host.check()
    async with AsyncExitStack() as stack:
        watchdog = stack.enter_context(Watchdog())
        listener.doing(f"starting PostgreSQL ({options.server.shown()})")
        cluster = await stack.enter_async_context(
            open_cluster(
                options.server, watchdog, options.folder, durable=options.durable, allow_existing=options.allow_existing
            )
        )
        if options.plan.outage == "database" and not cluster.may_be_hurt:
            raise BadInput("outage-of: the database is somebody's server and is not stopped; choose workers or sink")
        listener.doing(f"installing {options.subject.name}")
        database = await stack.enter_async_context(_database(options, cluster, watchdog))
        return await _Run(options, listener, cluster, watchdog, *database).play()


@contextlib.asynccontextmanager
async def _database(
    options: LoadOptions, cluster: Cluster, watchdog: Watchdog
) -> AsyncIterator[tuple[Address, LoadTable, str]]:
    programs = [str(cluster.programs)] if cluster.programs is not None else []
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *programs])
    address = await cluster.create_database("load")
    try:
        table = await prepare(Site(options.subject, cluster, watchdog, options.folder, path), address, truth=False)
        yield address, LoadTable(options.subject.jobs, table, f"load-{options.seed}-"), path
    finally:
        await cluster.drop_database("load")


class _Run:
    """One run, from its first job to its last."""

    def __init__(
        self,
        options: LoadOptions,
        listener: Listener,
        cluster: Cluster,
        watchdog: Watchdog,
        address: Address,
        table: LoadTable,
        path: str,
    ) -> None:
        self.options, self.listener, self.cluster, self.watchdog = options, listener, cluster, watchdog
        self.address, self.table = address, table
        self.plan, self.scaled = options.plan, options.plan.scaled()
        self.answer = size(self.scaled.question())
        self.phases, self.notes = Phases(), list[str]()
        self.work_seconds = max(float(self.plan.slots / self.answer.capacity.per_second), self.scaled.service_seconds)
        self.window = max(
            WINDOW_SERVICES * self.work_seconds,
            SMALLEST_WINDOW_JOBS / self.scaled.arrival_per_second,
            SHORTEST_WINDOW_SECONDS,
        )
        dues = due_times(self.plan, self._longest_seconds(), options.seed)
        if self.plan.stuck_head is not None:
            dues[0] = 0.0
        self.trace = Trace(table.prefix, dues, time.monotonic() + LEAD_SECONDS)
        secret = None if options.sink_host in LOOPBACK else secrets.token_urlsafe(18)
        kind = cast("Any", options.subject.sink)
        self.sink = Sink(kind, self.trace, options.sink_host, options.sink_port, secret)
        self.sink.service = Outside(self.plan, options.seed, self.trace.index_of, self.trace.served)
        self.producer = options.front()
        self.phase = WARM_UP
        self.looks: list[Look] = []
        self.joined = Joined(self.plan.workers)
        self.path = path
        self._progress_at = 0.0

    # -- life

    async def play(self) -> Measured:
        """All phases, then the end of every job."""
        async with AsyncExitStack() as stack:
            await self.sink.start()
            stack.push_async_callback(self.sink.close)
            self.workers = Workers(
                Place(
                    self.options.subject,
                    self.cluster.as_worker(self.address),
                    tuple(self.sink.url(n + 1) for n in range(self.plan.workers)),
                    self.options.folder,
                    self.watchdog,
                    self.path,
                ),
                self.scaled,
            )
            stack.push_async_callback(self.workers.kill)
            await self._head(stack)
            self.samplers = self._samplers()
            self.samplers.start()
            stack.push_async_callback(self.samplers.stop)
            if self.plan.external:
                await self._wait_for_others()
            else:
                await self.workers.start()
            stack.push_async_callback(self.producer.kill)
            await self._start_producer()
            await self._phases()
            produced = await self._stopped()
            ended, settings = await self._final()
            await self.samplers.stop()
        return self._measured(produced, ended, settings)

    async def _head(self, stack: AsyncExitStack) -> None:
        """The job at the head that will not move: it fails for ever, or its row stays locked. There before anybody works."""
        kind = self.plan.stuck_head
        if kind is None:
            return
        subject, key = self.options.subject, self.trace.key(0)
        if subject.enqueue_sql is None:
            raise BadInput("stuck-head: needs a subject that is enqueued by SQL")
        sender = BySql(self.address.dsn(), subject.enqueue_sql, self.table.known_sql)
        await asyncio.to_thread(sender.send, [key])
        sender.close()
        if kind == "locked":
            mapping = subject.jobs
            holder = await stack.enter_async_context(await psycopg.AsyncConnection.connect(self.address.dsn()))
            await holder.execute(
                f"select from {self.table.table.name} where ({mapping.key}) = %s for update",
                (key,),
            )

    async def _start_producer(self) -> None:
        options = self.options
        np.save(options.folder / "dues.npy", self.trace.dues)
        environment, log = self._producer_environment(), options.folder / "producer.log"
        await self.producer.prepare(environment, self.watchdog, log, self.listener.doing)
        # The schedule begins once everything is up, however long that took.
        self.trace.began = time.monotonic() + self.producer.lead_seconds
        await self.producer.start(self._orders(), environment, self.watchdog, log)
        if (url := getattr(self.producer, "url", None)) is not None:
            self.listener.doing(f"Locust's page is at {url}")

    def _orders(self) -> Orders:
        options = self.options
        return Orders(
            began=self.trace.began,
            dues=str((options.folder / "dues.npy").resolve()),
            out=str((options.folder / "produced.npz").resolve()),
            keys=(self.trace.prefix, DIGITS),
            enqueue_sql=options.subject.enqueue_sql,
            enqueue_command=tuple(self.workers.filled(part, 0) for part in options.subject.enqueue_command),
            known_sql=self.table.known_sql,
            folder=str(options.subject.folder),
            first=0 if self.plan.stuck_head is None else 1,
        )

    def _producer_environment(self) -> dict[str, str]:
        return self.workers.environment(0) | {"DATABASE_URL": self.address.url()} | self.address.env()

    def _samplers(self) -> Samplers:
        server = self.cluster.server if isinstance(self.cluster, OwnedCluster) else None
        return Samplers(
            self.address,
            self.cluster.worker_role,
            self.table,
            self.trace,
            server_pid=lambda: None if server is None else server.pid,
            worker_pids=lambda: self.workers.pids,
            alive=lambda: self.workers.names if self.plan.external or self.workers.pids else [],
            acknowledged=self._acknowledged,
            host_metrics=self.options.host_metrics,
            time_scale=self.scaled.scale,
        )

    def _acknowledged(self) -> tuple[int, int]:
        """At least so many of our jobs are in the table, and at most so many."""
        head = 0 if self.plan.stuck_head is None else 1
        due = int(np.searchsorted(self.trace.dues, self.trace.now(), side="right"))
        return self.producer.report.acknowledged + head, due

    async def _wait_for_others(self) -> None:
        """Jobs are there for them until each has made a call at its own address."""
        self.listener.doing(f"waiting for {self.plan.workers} workers; start them on their machines with")
        for n in range(self.plan.workers):
            self.listener.doing(f"  {self.workers.command_to_copy(n)}")
        self.trace.greeting = f"join-{self.options.seed}-{secrets.token_hex(4)}-"
        sender = sender_for(self._orders(), self._producer_environment())
        sent, next_at, deadline = 0, 0.0, time.monotonic() + JOIN_SECONDS
        try:
            while missing := self.joined.missing(self.trace.greeted):
                now = time.monotonic()
                if now > deadline:
                    raise EnvironmentFailed(
                        f"workers: waited {JOIN_SECONDS:g} s for {self.plan.workers} of them; no call came from worker"
                        f" {', '.join(map(str, missing))}"
                    )
                # As many jobs as there are slots, so that nobody can take them all; more when those have been taken.
                if now >= next_at and sum(self.trace.greeted.values()) >= sent:
                    keys = [f"{self.trace.greeting}{n}" for n in range(sent, sent + self.plan.slots)]
                    await asyncio.to_thread(sender.send, keys)
                    sent, next_at = sent + len(keys), now + GREETING_SECONDS
                await asyncio.sleep(TICK_SECONDS)
        except psycopg.Error as error:
            raise EnvironmentFailed(f"workers: jobs to greet them with cannot be enqueued: {error}") from error
        finally:
            sender.close()
        self.listener.doing(f"all {self.plan.workers} workers have joined")

    def _saw_others(self) -> None:
        row = self.samplers.rows[-1] if self.samplers.rows else {}
        if "worker_sessions" not in row:
            return
        told = self.joined.saw_sessions(int(row["worker_sessions"]), float(row["at"]))
        if told is not None:
            self.listener.doing(f"a worker has left: {told}")

    def _count_sessions(self) -> None:
        """What is usual once all have joined."""
        row = next((row for row in reversed(self.samplers.rows) if "worker_sessions" in row), None)
        if self.plan.external and row is not None:
            self.joined.settle(int(row["worker_sessions"]))

    def _miss_the_silent(self) -> None:
        """Who had a part in so many calls of the recovery and made none."""
        callers = [each.worker for each in self.trace.attempts if each.called >= self.phases.recovery_began]
        if self.plan.external and len(callers) >= CALLS_PER_SLOT_TO_MISS * self.plan.slots:
            self.joined.judge_silence(set(callers))

    # -- phases

    async def _phases(self) -> None:
        await self._until_at(0.0)
        self._count_sessions()
        self._enter(WARM_UP)
        await self._warm_up()
        self._enter(STEADY)
        self.phases.steady_began = self.trace.now()
        until = self.phases.steady_began + max(self.scaled.steady_seconds, self.window)
        await self._until_at(until)
        self.steady = self._steady_limits()
        self._enter(OUTAGE)
        await self._hurt()
        until = self.phases.outage_began + self.scaled.outage_seconds
        await self._until_at(until)
        self._enter(RECOVERY)
        await self._heal()
        await self._recover()
        self.phases.ended = self.trace.now()
        self._miss_the_silent()

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.samplers.phase(phase)
        self.producer.tell(phase=phase)

    async def _warm_up(self) -> None:
        """Until steady: tested on a window, every quarter of it; not at all when it will not be."""
        deadline = self.trace.now() + LONGEST_WARM_UP_WINDOWS * self.window
        if self.plan.ramp is not None:
            deadline += self.scaled.time(self.plan.ramp.seconds)
        tested_at = self.trace.now() + self.window + 5 * self.work_seconds
        while True:
            await self._until_at(tested_at)
            now = self.trace.now()
            recent = [(look.at, float(look.unfinished)) for look in self.looks if look.at >= now - self.window]
            found = self.phases.warm_up = judge_steadiness(recent)
            settled = found is not None and found.steady and self._ramp_is_over(now)
            if settled or now >= deadline:
                return
            tested_at = now + self.window / 4

    def _ramp_is_over(self, now: float) -> bool:
        return self.plan.ramp is None or now - self.window >= self.scaled.time(self.plan.ramp.seconds)

    def _steady_limits(self) -> Steady:
        """The worst of the steady phase, and never less than what one look apart can tell."""
        looks = [look for look in self.looks if look.at >= self.phases.steady_began]
        floor = self.samplers.period + 2 * self.scaled.poll_seconds
        oldest = {look.oldest_unfinished for look in looks}
        moves = len(oldest) > 1 or oldest == {None}
        given = None if self.plan.age_seconds is None else self.scaled.time(self.plan.age_seconds)
        ages = [look.oldest_unstarted_age for look in looks]
        unfinished = [look.oldest_unfinished_age for look in looks]
        tolerated = WINDOW_SERVICES * self.work_seconds + floor
        return Steady(
            usual=int(np.median([look.unstarted for look in looks])),
            unstarted=max(float(max(look.unstarted for look in looks)), 1.0),
            oldest_unstarted_age=given or (max(*ages, floor) if moves else tolerated),
            oldest_unfinished_age=max(given or 0.0, (max(*unfinished, floor) if moves else tolerated)),
            moves=moves,
        )

    async def _hurt(self) -> None:
        if self.plan.outage == "workers":
            await self.workers.kill()
        elif self.plan.outage == "sink":
            await self.sink.down()
        else:
            self.joined.reconnecting()
            await self.cluster.stop("fast")
        self.phases.outage_began = self.trace.now()

    async def _heal(self) -> None:
        self.phases.recovery_began = self.trace.now()
        if self.plan.outage == "workers":
            await self.workers.start()
        elif self.plan.outage == "sink":
            await self.sink.up()
        else:
            await self.cluster.start()

    def held_seconds(self) -> float:
        """How long it must be current: until a drift of the expected size would have shown, and a few services."""
        drift = self.answer.drain
        window = None
        if drift is not None and drift.net_per_second > 0:
            window = judging_window_seconds(drift.capacity_per_second - drift.net_per_second, drift.capacity_per_second)
        return min(
            max(window or 0.0, 3 * self.work_seconds, 4 * self.samplers.period), 2 * self.window + (window or 0.0)
        )

    def _patience(self) -> float:
        """How long a recovery may take before it is given up."""
        predicted = None if self.answer.drain is None else self.answer.drain.seconds
        patience = max(self.scaled.outage_seconds, 20.0) if predicted is None else 2 * float(predicted) + EXTRA_SECONDS
        return patience + (2 * self.scaled.backoff_cap_seconds if self.plan.outage == "sink" else 0.0)

    def _longest_seconds(self) -> float:
        """For how long there must be arrivals."""
        ramp = 0.0 if self.plan.ramp is None else self.scaled.time(self.plan.ramp.seconds)
        steady = max(self.scaled.steady_seconds, self.window)
        whole = (LONGEST_WARM_UP_WINDOWS + 3) * self.window + ramp + steady + self.scaled.outage_seconds
        whole += self._patience() * 1.5 + 3 * EXTRA_SECONDS
        if self.plan.at_most_seconds is not None:
            whole = min(whole, self.scaled.time(self.plan.at_most_seconds) + 3 * EXTRA_SECONDS)
        return whole

    def stuck_seconds(self) -> float:
        """A job that is at the head for so long, while others pass it, does not move."""
        return max(3 * self.held_seconds(), STUCK_WATCH_SECONDS)

    async def _recover(self) -> None:
        """Until current for the whole window; not for ever."""
        began, held = self.phases.recovery_began, self.held_seconds()
        patience = self._patience()
        deadline = began + patience + held
        if self.plan.at_most_seconds is not None:
            deadline = min(deadline, self.scaled.time(self.plan.at_most_seconds))
        current_since: float | None = None
        caught_up_since: float | None = None  # with the same job at the head ever since
        oldest: int | None = None

        def over(look: Look) -> bool:
            nonlocal current_since, caught_up_since, oldest
            caught_up = look.unstarted <= self.steady.unstarted and look.at > began + TICK_SECONDS
            if not caught_up or look.oldest_unfinished != oldest:
                caught_up_since, oldest = None, look.oldest_unfinished
            if caught_up and oldest is not None:
                caught_up_since = caught_up_since or look.at
            current = caught_up and self._is_current(look)
            current_since = (current_since or look.at) if current else None
            if current_since is not None and look.at - current_since >= held:
                self.phases.current_at = current_since
                return True
            # Throughput is back, but something at the head does not move: no need to watch it for ever.
            stuck = caught_up_since is not None and look.at - caught_up_since >= self.stuck_seconds()
            return stuck or look.at >= deadline

        await self._until(over, within=patience + held + EXTRA_SECONDS)

    def _is_current(self, look: Look) -> bool:
        counts = self.samplers.latest
        answered = bool(self.samplers.rows) and bool(self.samplers.rows[-1].get("database_answers"))
        return (
            answered
            and counts is not None
            and counts.orphans == 0
            and look.oldest_unstarted_age <= self.steady.oldest_unstarted_age
            and self._oldest_unfinished_age(look) <= self.steady.oldest_unfinished_age
        )

    def _oldest_unfinished_age(self, look: Look) -> float:
        """Since its first due time. What the trace takes for unfinished may have ended dead: the table knows."""
        counts = self.samplers.latest
        if look.oldest_unfinished_age <= self.steady.oldest_unfinished_age or counts is None:
            return look.oldest_unfinished_age
        oldest = None if counts.oldest_unfinished is None else self.trace.index_of(counts.oldest_unfinished)
        return 0.0 if oldest is None else look.at - float(self.trace.dues[oldest])

    async def _until_at(self, at: float) -> None:
        await self._until(lambda look: look.at >= at, within=at - self.trace.now())

    async def _until(self, done: Callable[[Look], bool], *, within: float) -> None:
        """Look, several times a service, until ``done``; the run's watchfulness lives here."""
        deadline = time.monotonic() + max(within, 0.0) + EXTRA_SECONDS
        while True:
            look = self.trace.look()
            if look.at >= 0:
                self.looks.append(look)
            if done(look):
                return
            if not self.producer.running:
                raise EnvironmentFailed("the producer ended before the run did; see producer.log in the run's folder")
            if not self.plan.external:
                self.workers.check()
            elif self.phase != OUTAGE:
                self._saw_others()
            self._say(look)
            if time.monotonic() > deadline:
                raise EnvironmentFailed(f"the {self.phase} phase did not end when it should have")
            await asyncio.sleep(TICK_SECONDS)

    def _say(self, look: Look) -> None:
        if look.at - self._progress_at < PROGRESS_SECONDS:
            return
        self._progress_at = look.at
        self.producer.tell(age_ms=round(look.oldest_unstarted_age * 1000, 1))
        before = next((other for other in self.looks if other.at >= look.at - 3), look)
        span = max(look.at - before.at, 1e-9)
        arrivals, done = (look.due - before.due) / span, (look.done - before.done) / span
        told = ""
        if self.phase == RECOVERY and done > arrivals:
            told = f"current in about {look.unstarted / (done - arrivals):.0f} s"
        elif self.phase == RECOVERY:
            told = "not draining at this rate"
        elif self.phase == OUTAGE:
            left = self.phases.outage_began + self.scaled.outage_seconds - look.at
            told = f"ends in {max(left, 0):.0f} s"
        self.listener.progress(
            Progress(self.phase, look.at, arrivals, done, look.unstarted, look.oldest_unstarted_age, told)
        )

    # -- the end

    async def _stopped(self) -> Produced:
        """No more jobs; those that are there get time to end."""
        produced = await self.producer.stop()
        deadline = time.monotonic() + END_SECONDS
        last = -1
        while time.monotonic() < deadline:
            counts = self.samplers.latest
            fresh = counts is not None and self.samplers.rows[-1]["at"] >= self.phases.ended + self.samplers.period
            if counts is not None and fresh and counts.due + counts.scheduled + counts.running == 0:
                break
            finished = self.trace.look().done
            if finished == last and self.plan.stuck_head is not None:
                break
            last = finished
            await asyncio.sleep(self.samplers.period * 2)
        return produced

    async def _final(self) -> tuple[tuple[Ended, ...], dict[str, str]]:
        await self.workers.kill()
        async with await psycopg.AsyncConnection.connect(self.address.dsn(), autocommit=True) as connection:
            ended = tuple(await self.table.ended(connection))
            cursor = await connection.execute(
                "select name, setting || coalesce(unit, '') from pg_settings where name = any (%s)", (list(SETTINGS),)
            )
            return ended, dict(await cursor.fetchall())

    def _measured(self, produced: Produced, ended: tuple[Ended, ...], settings: dict[str, str]) -> Measured:
        if self.plan.stuck_head is not None:
            first = np.zeros(1)
            produced = Produced(
                np.concatenate([[0], produced.job]),
                np.concatenate([first, produced.due]),
                np.concatenate([first, produced.sent]),
                np.concatenate([first, produced.acknowledged]),
            )
        self.samplers.save(self.options.folder)
        return Measured(
            plan=self.plan,
            scaled=self.scaled,
            answer=self.answer,
            seed=self.options.seed,
            phases=self.phases,
            steady=self.steady,
            held_seconds=self.held_seconds(),
            stuck_seconds=self.stuck_seconds(),
            dues=self.trace.dues,
            attempts=tuple(self.trace.attempts),
            starts=self.trace.first_starts(),
            effects=self.trace.effects,
            produced=produced,
            ended=ended,
            deletes=self.table.deletes,
            samples=self.samplers.frame(),
            looks=tuple(self.looks),
            strangers=self.trace.strangers,
            worst_loop_lag=self.samplers.worst_loop_lag,
            prefix=self.trace.prefix,
            server_version=self.cluster.version,
            server_source=self.cluster.source,
            server_address=self.address.shown(),
            server_settings=settings,
            cores=os.cpu_count() or 1,
            notes=tuple(self.notes),
            left=tuple(self.joined.left),
            given_up=dict(self.trace.given_up),
        )


SETTINGS = (
    "synchronous_commit", "fsync", "max_connections", "shared_buffers", "max_wal_size", "autovacuum", "full_page_writes",
)  # fmt: skip
