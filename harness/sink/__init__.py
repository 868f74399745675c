"""The outside world that handlers call: a real HTTP server that records, holds, refuses and forgets on command."""

from harness.sink.hold import HeldCall, SinkHold
from harness.sink.script import Script
from harness.sink.sink import Sink

__all__ = ["HeldCall", "Script", "Sink", "SinkHold"]
