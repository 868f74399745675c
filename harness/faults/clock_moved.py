"""The clock of the database's machine is put right, or wrong, in one step."""

import contextlib
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, own_server
from harness.faults.worker_paused import stopped

AHEAD_LEASES = 2.0
BACK_SECONDS = 1.0


def movable(target: Target) -> str | None:
    """Needs a server of our own whose clock can be moved."""
    if target.server is None:
        return own_server(target)
    return None if target.server.clock is not None else "this server's clock cannot be moved"


@fault("clock advanced", strikes="clock", needs=[movable], holds_seconds=1.0, lands_within_seconds=15.0)
async def clock_moved_ahead(target: Target) -> AsyncIterator[Landed]:
    """The clock jumps past every lease. Every worker is stopped meanwhile, for it would be no fault of theirs.

    It stays where it is: going back would be another fault.
    """
    async with contextlib.AsyncExitStack() as stack:
        for worker in target.everyone:
            if worker.running and worker.process_state == "running":
                await stack.enter_async_context(stopped(worker))
        seconds = (target.lease_seconds or 2.0) * AHEAD_LEASES
        yield Landed(await moved(target, seconds))


@fault("clock set back", strikes="clock", needs=[movable], holds_seconds=1.0, excuses=["claim_order"])
async def clock_moved_back(target: Target) -> AsyncIterator[Landed]:
    """The clock goes back by a second: leases end that much later, and what was due when it came is due again a second later."""
    yield Landed(await moved(target, -BACK_SECONDS))


async def moved(target: Target, seconds: float) -> str:
    """Move it, and say by how much an open session saw it move."""
    clock = target.hurt.clock
    assert clock is not None, "asked before"
    async with target.connected("clock") as connection:

        async def now() -> float:
            row = await (await connection.execute("select extract(epoch from clock_timestamp())::float8")).fetchone()
            assert row is not None
            return float(row[0])

        before = await now()
        clock.advance(seconds)
        after = await now()
    return f"clock_timestamp() of an open session went by {after - before:+.1f} s"
