"""What the proxy costs: requests per second through it over direct, and the microseconds it adds, in one run.

The client is a process of its own that calls libpq in C (``wire_client``), so the proxy is measured and not the client;
the proxy runs in the caller's event loop, nothing armed, as between two points of a play. Direct and proxied turns
alternate, so that a machine that slows down slows both.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.contracts.problem import EnvironmentFailed
from harness.history.recorder import Recorder
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy
from harness.wire.statements import StatementBook

AIM_ONE = 0.45  # of direct requests per second, on one connection
CONNECTIONS = (1, 16)


async def run(host: str, port: int, env: Mapping[str, str], *, seconds: float = 1.0, turns: int = 3) -> dict[str, Any]:
    """Measure against the server at ``host``, ``port``; ``env`` has libpq's PGUSER, PGDATABASE, PGPASSWORD.

    Takes about ``4 * turns * seconds``. The ratios are medians over the turns.
    """
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder) / "history.jsonl") as recorder:
        proxy = Proxy(1, host, port, recorder.play("bench"), StatementBook(), KnownJobs())
        await proxy.start()
        try:
            direct = {**env, "PGHOST": host, "PGPORT": str(port)}
            through = {**env, "PGHOST": "127.0.0.1", "PGPORT": str(proxy.port), "PGSSLMODE": "disable"}
            ways = {"direct": direct, "proxied": through}
            seen: defaultdict[tuple[int, str], list[dict[str, float]]] = defaultdict(list)
            for _ in range(turns):
                for connections in CONNECTIONS:
                    for way, variables in ways.items():
                        seen[connections, way].append(await _measure(variables, connections, seconds))
        finally:
            await proxy.close()
    return {
        "client": "libpq in C, a process of its own",
        "loop": type(asyncio.get_running_loop()).__module__.partition(".")[0],
        "aim_one_connection": AIM_ONE,
        "connections": {
            str(connections): _compare(seen[connections, "direct"], seen[connections, "proxied"])
            for connections in CONNECTIONS
        },
    }


async def _measure(env: Mapping[str, str], connections: int, seconds: float) -> dict[str, float]:
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "harness.bench.wire_client",
        str(connections),
        str(seconds),
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds + 30):
            out, complaint = await client.communicate()
    except TimeoutError:
        client.kill()
        await client.wait()
        raise EnvironmentFailed(
            f"the benchmark's client did not end within {seconds + 30:g} s; is the server answering?"
        ) from None
    if client.returncode:
        raise EnvironmentFailed(f"the benchmark's client failed: {complaint.decode(errors='replace').strip()[-500:]}")
    measured: dict[str, float] = json.loads(out)
    measured["per_second"] = measured["requests"] / measured["seconds"]
    return measured


def _compare(direct: list[dict[str, float]], proxied: list[dict[str, float]]) -> dict[str, float]:
    pairs = list(zip(direct, proxied, strict=True))
    return {
        "direct_per_second": round(_median([turn["per_second"] for turn in direct])),
        "proxied_per_second": round(_median([turn["per_second"] for turn in proxied])),
        "ratio": round(_median([after["per_second"] / before["per_second"] for before, after in pairs]), 3),
        "added_p50_us": round(_median([after["p50_us"] - before["p50_us"] for before, after in pairs]), 1),
    }


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
