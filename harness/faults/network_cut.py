"""A worker is cut off: what it sends and what it is sent vanishes, and every socket stays open."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, has_victim


@fault("network cut", strikes="connection", needs=[has_victim], holds_seconds=3.0, holds_leases=1.5)
async def network_cut(target: Target) -> AsyncIterator[Landed]:
    """A black hole between a worker and both the database and the outside; what was held arrives when it is healed."""
    victim = target.victim
    try:
        victim.wire.cut()
        target.sink.cut(victim.number)
        yield Landed(f"the wire of worker {victim.number} swallows both directions", victim.number)
    finally:
        victim.wire.heal()
        target.sink.heal(victim.number)
