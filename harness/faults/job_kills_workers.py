"""One job ends whoever takes it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from harness.contracts.fault import Landed, fault
from harness.contracts.point import Point
from harness.faults.target import LOOK_SECONDS, Target, Victim, has_victim
from harness.sink.hold import HeldCall, SinkHold

CALL_SECONDS = 9.0


@fault(
    "a job kills its workers",
    strikes="worker",
    needs=[has_victim],
    holds_seconds=14.0,
    needs_results=True,
    lands_within_seconds=20.0,
)
async def job_kills_workers(target: Target) -> AsyncIterator[Landed]:
    """Every worker that calls for one certain job is killed, and started again: a payload that blows up the process.

    A queue that counts only the failures that a worker lived to report hands it on for ever.
    """
    next_call = target.sink.hold(Point.CALLING, key=target.key)
    hold: SinkHold | None = None
    killer: asyncio.Task[None] | None = None
    try:
        first = await next_call.reached(CALL_SECONDS)
        key = first.key
        hold = target.sink.hold(Point.CALLING, key=key, times=None)
        await _kill(target, first)
        killer = asyncio.get_running_loop().create_task(_kill_on(target, hold))
        yield Landed(f"worker {first.worker} was killed as it called for job {key!r}", first.worker, key)
    finally:
        next_call.release()
        if hold is not None:
            hold.release()
        if killer is not None:
            killer.cancel()
            await asyncio.wait([killer])
        await _start(target.everyone)


async def _kill(target: Target, call: HeldCall) -> None:
    victim = next(worker for worker in target.everyone if worker.number == call.worker)
    if victim.running:
        await victim.kill()
    await _start([victim])


async def _kill_on(target: Target, hold: SinkHold) -> None:
    """Until we are cancelled, which the fault's own end does."""
    seen = 0
    while True:
        while seen < len(hold.held):
            await _kill(target, hold.held[seen])
            seen += 1
        await asyncio.sleep(LOOK_SECONDS)


async def _start(workers: Sequence[Victim]) -> None:
    for worker in workers:
        if not worker.running:
            await worker.start()
