"""Others who do at this moment what the subject does: a producer that thinks better of it, an operator who takes rows in turn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from harness.contracts.point import Point
from harness.history.recorder import DeadlinePassed
from harness.wire.holds import RequestView

if TYPE_CHECKING:
    from harness.lab.lab import Lab
    from harness.lab.worker import LabWorker

ROLLED_BACK = "an enqueue met another one of its key that was not committed, and was rolled back"
CROSSED = "the next row was locked while a result of the first was being written"
ENQUEUE_SECONDS = 20.0
CALLS_SECONDS = 5.0
WAITS_SECONDS = 1.5
LOCK_MS = 20_000


async def enqueue_beside_a_rolled_back_one(lab: "Lab", key: str) -> None:
    """Enqueue a job while another producer's insert of the same key is open; that one is rolled back as soon as we have an
    answer, or are seen waiting for it.
    """
    other = await lab.connect("other producer")
    await other.execute("begin")
    pid = other.info.backend_pid
    await lab.say_enqueue(other, key)
    ours = asyncio.ensure_future(lab.enqueue([key]))
    try:

        async def met() -> str | None:
            if ours.done():
                return "was answered"
            backend = await lab.view.backend(lab.producer_pid)
            return f"waited: {backend.told()}" if backend is not None and pid in backend.blocked_by else None

        what = await lab.eventually_shown(
            met, within_seconds=ENQUEUE_SECONDS, reason=f"the enqueue of job {key!r} to be answered, or to wait"
        )
        await other.rollback()
        lab.saw(ROLLED_BACK, f"the enqueue {what}; backend {pid}, which had inserted it before, rolled back", key=key)
        async with asyncio.timeout(ENQUEUE_SECONDS):
            await ours
    except TimeoutError as error:
        raise DeadlinePassed(f"waited {ENQUEUE_SECONDS:g} s for the enqueue of job {key!r} to be answered") from error
    finally:
        ours.cancel()
        await asyncio.gather(ours, return_exceptions=True)


async def lock_across_results(lab: "Lab", worker: "LabWorker", keys: Sequence[str]) -> None:
    """Lock the first job's row when a worker has both in hand, let it write, and lock the second while it is at that.

    Whoever locks rows in another order than by id now waits for us, and we for him. His wait began first, so the server, which
    looks for deadlocks when a wait has lasted a while, ends his statement.
    """
    hold = lab.sink.hold(Point.CALLED, worker=worker.number, times=None)
    await worker.start()
    await hold.reached(within_seconds=15)
    with contextlib.suppress(DeadlinePassed):  # a worker that takes one at a time has the other still to take
        await lab.eventually(
            lambda: len(hold.held) >= len(keys), within_seconds=CALLS_SECONDS, reason="both jobs to be called for"
        )
    writers: set[int] = set()

    def notes(request: RequestView) -> bool:
        if request.bound and "complete" in request.changes:
            writers.add(request.session.pid)
        return False  # it is not held up

    said = worker.wire.hold_request(notes)
    try:
        async with _locking(lab) as (pid, lock):
            await lock(keys[0])
            hold.release()
            how = await _writing(lab, writers, pid)
            await lock(keys[1])
            lab.saw(
                CROSSED, f"backend {pid} of ours had {keys[0]!r}, and was given {keys[1]!r} too; {how}", worker=worker
            )
    finally:
        said.disarm()


async def _writing(lab: "Lab", writers: Collection[int], locker: int) -> str:
    """Wait until a session that writes results waits behind our lock; how it looks then. Not every queue waits for a row."""

    async def waits() -> str | None:
        backends = await lab.view.backends()
        return next((b.told() for b in backends if b.pid in writers and locker in b.blocked_by), None)

    try:
        return str(
            await lab.eventually_shown(
                waits, within_seconds=WAITS_SECONDS, reason="a result to wait behind a locked row"
            )
        )
    except DeadlinePassed:
        if not writers:
            raise
        return "the results that were written meanwhile did not wait for it"


@contextlib.asynccontextmanager
async def _locking(lab: "Lab") -> AsyncIterator[tuple[int, Callable[[str], Awaitable[None]]]]:
    """A transaction of ours that locks rows one by one, rolled back in the end. Of two that wait for each other, it is not the
    one that gives up, where we may say so.
    """
    connection = await lab.connect("locker")
    await connection.execute("begin")
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        async with connection.transaction():
            await connection.execute(f"set local deadlock_timeout = {LOCK_MS}")
    await connection.execute(f"set local lock_timeout = {LOCK_MS // 2}")
    query = sql.SQL("select from {table} where ({key}) = %s for update").format(
        table=sql.SQL(lab.ground.table.name), key=sql.SQL(lab.subject.jobs.key.replace("%", "%%"))
    )

    async def lock(key: str) -> None:
        try:
            await connection.execute(query, (key,))
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as error:
            raise DeadlinePassed(
                f"our transaction was not given the row of job {key!r}: {str(error).strip()}"
            ) from error

    try:
        yield connection.info.backend_pid, lock
    finally:
        with contextlib.suppress(psycopg.OperationalError):
            await connection.rollback()
