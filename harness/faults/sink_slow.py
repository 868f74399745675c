"""The outside world takes its time."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target
from harness.history.events import Called

SERVICE_SECONDS = 1.0
CALL_SECONDS = 9.0


@fault("sink slow", strikes="sink", holds_seconds=4.0)
async def sink_slow(target: Target) -> AsyncIterator[Landed]:
    """Each call takes a second longer, before its effect."""
    sink = target.sink
    before = sink.service_seconds
    try:
        sink.service_seconds = before + SERVICE_SECONDS
        since = target.recorder.entries[-1].n if target.recorder.entries else 0
        struck = await target.recorder.wait_for(
            lambda entry: isinstance(entry.what, Called),
            within_seconds=CALL_SECONDS,
            reason="a handler to call",
            since=since,
        )
        assert isinstance(struck.what, Called)
        yield Landed(f"call {struck.what.call} and those after it take {sink.service_seconds:g} s")
    finally:
        sink.service_seconds = before
