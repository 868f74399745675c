"""What a dead worker asked for happens after all."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.contracts.point import Point
from harness.faults.target import Target, Victim, has_victim
from harness.history.events import Applied

CALL_SECONDS = 9.0


@fault("sink applies late", strikes="sink", needs=[has_victim], holds_seconds=1.0)
async def sink_applies_late(target: Target) -> AsyncIterator[Landed]:
    """The next worker that calls dies while its call is on the way, and the call takes effect afterwards, with nobody to hear the reply."""
    sink, recorder = target.sink, target.recorder
    hold = sink.hold(Point.CALLING)
    victim: Victim | None = None
    try:
        call = await hold.reached(CALL_SECONDS)
        sink.apply_late = True
        victim = next(worker for worker in target.everyone if worker.number == call.worker)
        await victim.kill()
        hold.release()
        applied = await recorder.wait_for(
            lambda entry: isinstance(entry.what, Applied) and entry.what.call == call.call,
            within_seconds=5,
            reason="the call of the dead worker to be applied",
        )
        assert isinstance(applied.what, Applied)
        yield Landed(
            f"call {call.call} took effect ({applied.what.outcome}) after its worker had died", victim.number, call.key
        )
    finally:
        hold.release()
        sink.apply_late = False
        if victim is not None and not victim.running:
            await victim.start()
