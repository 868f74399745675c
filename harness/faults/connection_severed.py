"""A worker's connections break under it."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, has_victim, shown


@fault("connection severed", strikes="connection", needs=[has_victim], holds_seconds=0)
async def connection_severed(target: Target) -> AsyncIterator[Landed]:
    """Every connection of one worker is reset on both sides, wherever its conversation stands.

    A scenario severs at an exact point of the protocol by stopping the worker there first.
    """
    victim = target.victim

    async def some() -> list[int]:
        return [session.pid for session in victim.sessions if session.open]

    pids = await shown(some, within_seconds=5, reason=f"worker {victim.number} to be connected")
    victim.wire.sever()
    told = ", ".join(map(str, pids))
    yield Landed(f"the connections to backends {told} are reset on both sides", victim.number)
