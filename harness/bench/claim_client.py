"""One worker of the claim benchmark, as a process of its own: the reference queue's Protocol on its Sessions, no handler.

Reads lines ``batch seconds`` and answers each with the seconds it took, and its CPU seconds; an empty line, or the end, ends it. One connection:
as many as a pgbench client has.
"""

import asyncio
import json
import sys
import time

from reference_queue.metrics import Metrics
from reference_queue.protocol import Protocol
from reference_queue.sessions import Sessions, opened
from reference_queue.settings import read
from reference_queue.statements import Statements


async def work(name: str, conninfo: str) -> None:
    """Answer turns until told to end."""
    async with opened(Sessions(conninfo, name, 1, 30.0)) as sessions:
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            batch, seconds = line.split()
            settings = read(["--database", conninfo, "--name", name, "--lease", "1h", "--slots", batch], {})
            protocol = Protocol(settings, Statements(), sessions, ["default"], Metrics())
            busy = time.process_time()
            took = await turn(protocol, int(batch), float(seconds))
            sys.stdout.write(json.dumps({"seconds": took, "cpu_seconds": time.process_time() - busy}) + "\n")
            sys.stdout.flush()


async def turn(protocol: Protocol, batch: int, seconds: float) -> float:
    """Claim and complete for about so long. A batch's results come at one moment, so the queue writes them together."""
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        grants = await protocol.claim(batch)
        await asyncio.gather(*(protocol.complete(grant, None, "completed") for grant in grants))
    return time.perf_counter() - began


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
