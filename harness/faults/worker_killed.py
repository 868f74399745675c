"""A worker dies without a word."""

import signal
from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, has_victim


@fault("killed", strikes="worker", needs=[has_victim], holds_seconds=1.0)
async def worker_killed(target: Target) -> AsyncIterator[Landed]:
    """SIGKILL to a worker's whole process group: out of memory, a node that is gone. Started again when healed."""
    victim = target.victim
    pid = victim.pid
    await victim.kill()
    yield Landed(f"process group {pid} is gone from the process table, by {signal.SIGKILL.name}", victim.number)
    if not victim.running:
        await victim.start()
