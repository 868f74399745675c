"""The event loop that carries a run: uvloop where there is one, since the proxy stands on every byte between worker and server."""

import asyncio

try:
    import uvloop
except ImportError:  # a platform without it
    uvloop = None  # type: ignore[assignment]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop, for ``asyncio.Runner(loop_factory=...)``.

    Whoever closes a connection waits first for the task that reads from it: libuv ends the process (abort) when a
    descriptor is closed that it still watches, and the standard loop would take the reader from whoever is given its number.
    """
    return uvloop.new_event_loop() if uvloop is not None else asyncio.new_event_loop()
