"""The outside world repeats itself."""

from collections.abc import AsyncIterator

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, comes_true

CALL_SECONDS = 9.0


@fault("sink answers twice", strikes="sink", holds_seconds=1.5, excuses=["failures_are_real"])
async def sink_answers_twice(target: Target) -> AsyncIterator[Landed]:
    """Every call takes effect and its reply is sent twice on the same connection: a careless balancer, a bug of theirs.

    A client that keeps the connection must not take the second reply for the answer to its next call. It may take the first for
    broken: that is the one failure it may write down although the call was answered.
    """
    script = target.sink.answer_twice()
    try:
        await comes_true(lambda: script.hits, within_seconds=CALL_SECONDS, reason="a handler to call")
        yield Landed(f"{script.hits} call so far is answered twice")
    finally:
        script.cancel()
