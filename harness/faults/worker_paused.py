"""A worker stands still and does not know it."""

import signal
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, comes_true, has_victim


@fault("paused", strikes="worker", needs=[has_victim], holds_seconds=3.0)
async def worker_paused(target: Target) -> AsyncIterator[Landed]:
    """SIGSTOP to a worker's whole process group: a suspended machine, a debugger, a long collection of garbage."""
    victim = target.victim
    victim.signal(signal.SIGSTOP)
    try:
        await comes_true(
            lambda: victim.process_state == "stopped",
            within_seconds=5,
            reason=f"worker {victim.number} to be stopped in the process table",
        )
        yield Landed(f"process {victim.pid} is stopped in the process table", victim.number)
    finally:
        victim.signal(signal.SIGCONT)
