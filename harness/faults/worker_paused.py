"""A worker stands still and does not know it."""

import contextlib
import signal
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, Victim, comes_true, has_victim


@fault("paused", strikes="worker", needs=[has_victim], holds_seconds=3.0, holds_leases=1.5)
async def worker_paused(target: Target) -> AsyncIterator[Landed]:
    """SIGSTOP to a worker's whole process group: a suspended machine, a debugger, a long collection of garbage."""
    victim = target.victim
    async with stopped(victim):
        yield Landed(f"process {victim.pid} is stopped in the process table", victim.number)


@contextlib.asynccontextmanager
async def stopped(victim: Victim) -> AsyncIterator[None]:
    """A worker is stopped for the time of a block, proven by the process table."""
    victim.signal(signal.SIGSTOP)
    try:
        await comes_true(
            lambda: victim.process_state == "stopped",
            within_seconds=5,
            reason=f"worker {victim.number} to be stopped in the process table",
        )
        yield
    finally:
        victim.signal(signal.SIGCONT)
