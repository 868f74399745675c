"""The worker: claims jobs for its free slots, runs their handlers outside of any transaction, and writes down the result.

``python -m reference_queue.worker --lease 30s``. SIGTERM drains: what was claimed and not started goes back at once,
what runs is run to its end under its heartbeat, and the exit code is 0.
"""

import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import psycopg

from reference_queue import handlers as handling
from reference_queue.attempt import Attempt
from reference_queue.grants import Grant, WrongColumns
from reference_queue.heartbeat import Heartbeat
from reference_queue.held import Held
from reference_queue.metrics import Endpoint, Metrics
from reference_queue.migrations import CURRENT
from reference_queue.protocol import Protocol
from reference_queue.sessions import NothingHappened, Sessions, Unknown, opened
from reference_queue.settings import BadSetting, Settings, read
from reference_queue.statements import MissingStatement, Statements

MOST_SESSIONS = 4
LONGEST_RECONNECT_SECONDS = 5.0
TAKEOVERS_PER_LEASE = 8
LOOKS_PER_OVERDUE = 10

log = logging.getLogger("reference_queue")


class WrongSchema(Exception):
    """The database is not of the shape that this version works on. The message says which it is and what to do."""


class Worker:
    """One process's worth of slots."""

    def __init__(
        self, settings: Settings, statements: Statements, sessions: Sessions, handlers: handling.Handlers
    ) -> None:
        self._settings = settings
        self._statements = statements
        self._sessions = sessions
        self.metrics = Metrics()
        self._protocol = Protocol(settings, statements, sessions, sorted(handlers), self.metrics)
        self._handlers = handlers
        self._held = Held()
        self._buffer: deque[tuple[Grant, float]] = deque()
        self._running: dict[int, tuple[Attempt, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()
        self._stopping = False
        self._next_takeover = 0.0
        self._idle_seconds = 0.0
        self._looks = 0

    async def run(self) -> None:
        """Work until told to stop, then drain."""
        loop = asyncio.get_running_loop()
        heartbeat = Heartbeat(
            self._settings,
            self._statements,
            self._held,
            lambda grant, fate: _tell(loop, self._lose, grant, fate),
            lambda: _tell(loop, self._wake.set),
            lambda renewed: _tell(loop, self.metrics.add, "renewals_total", renewed),
        )
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self.stop)
        self.metrics.gauges = {
            "executing_jobs": lambda: self._held.executing,
            "buffered_jobs": lambda: self._held.buffered,
        }
        endpoint = Endpoint(self.metrics, self._sessions, self._statements)
        if self._settings.metrics_port is not None:
            log.info("metrics port=%d", await endpoint.start("127.0.0.1", self._settings.metrics_port))
        heartbeat.start()
        try:
            await self._work()
            await self._drain()
        finally:
            # The last thing to end: no handler runs any more.
            heartbeat.stop()
            endpoint.close()
            await asyncio.to_thread(heartbeat.join, 2.0)

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def _work(self) -> None:
        trouble_seconds = 0.1
        while not self._stopping:
            # Cleared before the look at the table: a wake-up that comes during the look is not lost.
            self._wake.clear()
            room = self._room()
            if not room:
                await self._wake.wait()
                continue
            try:
                found = await self._look(room)
            except (NothingHappened, Unknown) as error:
                log.warning("claim trouble=%s", error)
                await self._wait(random.uniform(trouble_seconds / 2, trouble_seconds))
                trouble_seconds = min(trouble_seconds * 2, LONGEST_RECONNECT_SECONDS)
                continue
            except psycopg.Error as error:
                # Read-only after a failover, a grant taken away, a column gone: it may be mended while we wait.
                log.warning("claim refused=%s sqlstate=%s", type(error).__name__, error.sqlstate)
                await self._wait(random.uniform(trouble_seconds / 2, trouble_seconds))
                trouble_seconds = min(trouble_seconds * 2, LONGEST_RECONNECT_SECONDS)
                continue
            trouble_seconds = 0.1
            if found:
                self._idle_seconds = 0.0
            else:
                await self._wait(self._idle_wait())

    def _room(self) -> int:
        free = self._settings.slots + self._settings.buffer - len(self._running) - len(self._buffer)
        return max(0, min(free, self._settings.batch))

    async def _look(self, room: int) -> bool:
        """Take over first, for those jobs have waited longest; then claim."""
        found = False
        if time.monotonic() >= self._next_takeover:
            self._next_takeover = time.monotonic() + self._settings.lease_seconds / TAKEOVERS_PER_LEASE
            taken = await self._protocol.take_over(room, [grant.id for grant in self._held.all()])
            self._accept(taken, "taken_over")
            room -= len(taken)
            found = bool(taken)
        for claim in await self._claims():
            if room <= 0 or self._stopping:
                break
            claimed = await claim(room)
            self._accept(claimed, "claimed")
            room -= len(claimed)
            found = found or bool(claimed)
        return found

    async def _claims(self) -> Sequence[Callable[[int], Awaitable[list[Grant]]]]:
        """What this look asks for, in turn. Jobs of tenants and the others take turns at being first."""
        self._looks += 1
        claims = [self._protocol.claim]
        if await self._protocol.has_tenants():
            claims.insert(self._looks % 2, self._protocol.claim_of_tenants)
        if self._looks % LOOKS_PER_OVERDUE == 0:
            claims.insert(0, self._protocol.claim_overdue)
        return claims

    def _idle_wait(self) -> float:
        """From an eighth of the poll time up to all of it, doubling, less a random tenth: idle workers do not march in step."""
        poll = self._settings.poll_seconds
        self._idle_seconds = min(poll, self._idle_seconds * 2 or poll / 8)
        return self._idle_seconds * random.uniform(0.9, 1.0)

    async def _wait(self, wait_seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait_seconds)

    def _accept(self, grants: Sequence[Grant], how: str) -> None:
        self._held.add(grants)
        for grant in grants:
            log.info(
                "job=%d %s version=%d attempt=%d phase=%s", grant.id, how, grant.version, grant.attempts, grant.phase
            )
        if how == "taken_over":
            self.metrics.add("takeovers_total", len(grants))
        now = time.monotonic()
        self._buffer.extend((grant, now) for grant in grants)
        self._fill_slots()

    def _fill_slots(self) -> None:
        while self._buffer and len(self._running) < self._settings.slots and not self._stopping:
            grant, granted_at = self._buffer.popleft()
            if not self._held.start(grant):
                continue
            self.metrics.add("started_jobs_total")
            self.metrics.add("claim_to_start_seconds_sum", time.monotonic() - granted_at)
            attempt = Attempt(grant, self._handlers[grant.kind], self._protocol, self._held, self.metrics)
            task = asyncio.create_task(attempt.run())
            self._running[grant.id] = (attempt, task)
            task.add_done_callback(partial(self._end, grant))

    def _end(self, grant: Grant, ended: asyncio.Task[None]) -> None:
        self._running.pop(grant.id, None)
        self._held.drop(grant)
        error = None if ended.cancelled() else ended.exception()
        if error is not None:
            # The database refused a statement outright. The lease will end and a successor acts on the phase.
            log.error(
                "job=%d abandoned=%s sqlstate=%s", grant.id, type(error).__name__, getattr(error, "sqlstate", None)
            )
        self._fill_slots()
        self._wake.set()

    def _lose(self, grant: Grant, fate: str) -> None:
        """The heartbeat says that a grant is ours no more: stop its handler, and write nothing."""
        if not self._held.drop(grant):
            return
        self.metrics.add("lost_total", label=fate)
        log.warning("job=%d version=%d ownership=%s", grant.id, grant.version, fate)
        running = self._running.get(grant.id)
        if running is not None and running[0].grant.version == grant.version:
            running[0].abandon()

    async def _drain(self) -> None:
        waiting = [grant for grant, _ in self._buffer if self._held.drop(grant)]
        self._buffer.clear()
        log.info("draining buffered=%d executing=%d", len(waiting), len(self._running))
        for attempt, _ in self._running.values():
            attempt.give_back_if_not_started()
        await self._protocol.release(waiting, "worker shut down before it started")
        while self._running:
            await asyncio.wait([task for _, task in self._running.values()])
            await asyncio.sleep(0)  # lets the tasks' callbacks run, which empty the table


def sessions_for(slots: int) -> int:
    """How many connections besides the heartbeat's: a blocked statement must not hold up the others."""
    return min(slots, MOST_SESSIONS - 1) + 1


async def check_schema(sessions: Sessions, statements: Statements) -> None:
    """Refuse to work on a database of another shape."""
    try:
        rows = await sessions.run(statements.text("read_schema"), {})
    except psycopg.errors.UndefinedTable:
        raise WrongSchema("there is no queue in this database: install its schema first") from None
    except psycopg.Error as error:
        raise WrongSchema(f"the queue's schema version cannot be read: {str(error).partition(chr(10))[0]}") from None
    found = rows[0]["version"] if rows else None
    if found != CURRENT:
        raise WrongSchema(
            f"the queue's schema has version {found}, and this worker works on {CURRENT}: run reference-queue migrate"
        )


async def work(settings: Settings, statements: Statements) -> None:
    """Run one worker until it is told to stop."""
    async with (
        handling.find(settings.handlers)() as handlers,
        opened(
            Sessions(settings.conninfo, settings.worker, sessions_for(settings.slots), settings.deadline_seconds)
        ) as sessions,
    ):
        await _first_contact(sessions, statements)
        await Worker(settings, statements, sessions, handlers).run()


async def _first_contact(sessions: Sessions, statements: Statements) -> None:
    """The database may start later than we do: try for a while."""
    for tries in range(8):
        try:
            await check_schema(sessions, statements)
            return
        except (NothingHappened, Unknown) as error:
            log.warning("database unreachable=%s try=%d", error, tries)
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(0.1 * 2**tries, LONGEST_RECONNECT_SECONDS))
    raise NothingHappened("no connection to the database after 8 tries")


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *values: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to be told
        loop.call_soon_threadsafe(function, *values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 after a drain, 2 for a wrong setting, schema or statement, 3 when the database cannot be reached."""
    logging.basicConfig(
        level=os.environ.get("QUEUE_LOG", "INFO"), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        settings = read(sys.argv[1:] if arguments is None else arguments, os.environ)
        asyncio.run(work(settings, Statements.from_environment(os.environ)))
    except (BadSetting, WrongSchema, WrongColumns, MissingStatement) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except NothingHappened as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
