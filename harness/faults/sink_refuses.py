"""The outside world says no."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, comes_true
from harness.sink.script import Script

UNAVAILABLE = 503
CALL_SECONDS = 9.0


@fault("sink refuses", strikes="sink", holds_seconds=0.6)
async def sink_refuses(target: Target) -> AsyncIterator[Landed]:
    """Every call is answered 503, without an effect: an overloaded service, a deployment of theirs."""
    script = target.sink.answer_with(UNAVAILABLE)
    try:
        await _struck(script)
        yield Landed(
            f"{script.hits} call{'s' if script.hits > 1 else ''} so far answered {UNAVAILABLE}, without an effect"
        )
    finally:
        script.cancel()


@fault("sink applies, then refuses", strikes="sink", holds_seconds=0.6)
async def sink_refuses_after_its_effect(target: Target) -> AsyncIterator[Landed]:
    """Every call takes effect and is answered 503 all the same."""
    script = target.sink.apply_then_refuse(UNAVAILABLE, times=None)
    try:
        await _struck(script)
        yield Landed(
            f"{script.hits} call{'s' if script.hits > 1 else ''} so far took effect and answered {UNAVAILABLE}"
        )
    finally:
        script.cancel()


@fault("sink drops its replies", strikes="sink", holds_seconds=0.6)
async def sink_refuses_to_reply(target: Target) -> AsyncIterator[Landed]:
    """Every call takes effect, and the connection is closed instead of a reply."""
    script = target.sink.drop_reply(times=None)
    try:
        await _struck(script)
        yield Landed(f"{script.hits} call{'s' if script.hits > 1 else ''} so far took effect and not answered")
    finally:
        script.cancel()


async def _struck(script: Script) -> None:
    await comes_true(lambda: script.hits, within_seconds=CALL_SECONDS, reason="a handler to call")
