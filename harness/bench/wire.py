"""What the proxy costs: requests per second through it over direct, and the microseconds it adds, in one run.

The client (``wire_client``) is a process of its own: psycopg as a Python worker uses it, and libpq called in C, which is
the hardest case, for it adds nothing to either side. The proxy runs in the caller's event loop, nothing armed, as between
two points of a play. Direct and proxied turns alternate, so that a machine that slows down slows both.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed
from harness.history.recorder import Recorder
from harness.postgres.cluster import open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy
from harness.wire.statements import StatementBook

AIM_ONE = 0.45  # of direct requests per second, on one connection of a psycopg client
CASES = (("psycopg", 1), ("libpq", 1), ("libpq", 16))


async def run() -> dict[str, float | str]:
    """Measure against an embedded server of our own, in the loop that the gate uses. About 20 s."""
    with tempfile.TemporaryDirectory(prefix="queueproof-wire-") as folder, Watchdog() as watchdog:
        async with open_cluster(parse_server("embedded"), watchdog, Path(folder)) as cluster:
            address = await cluster.create_database("bench")
            try:
                return await measure(address.host, address.port, address.env())
            finally:
                await cluster.drop_database("bench")


async def measure(
    host: str, port: int, env: Mapping[str, str], *, seconds: float = 0.8, turns: int = 3
) -> dict[str, float | str]:
    """Measure against the server at ``host``, ``port``; ``env`` has libpq's PGUSER, PGDATABASE, PGPASSWORD.

    Takes about ``6 * turns * seconds``. The ratios are medians over the turns.
    """
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder) / "history.jsonl") as recorder:
        proxy = Proxy(1, host, port, recorder.play("bench"), StatementBook(), KnownJobs())
        await proxy.start()
        try:
            direct = {**env, "PGHOST": host, "PGPORT": str(port)}
            through = {**env, "PGHOST": "127.0.0.1", "PGPORT": str(proxy.port), "PGSSLMODE": "disable"}
            ways = {"direct": direct, "proxied": through}
            seen: defaultdict[tuple[str, int, str], list[dict[str, float]]] = defaultdict(list)
            for _ in range(turns):
                for client, connections in CASES:
                    for way, variables in ways.items():
                        measured = await _measure(variables, client, connections, seconds)
                        seen[client, connections, way].append(measured)
        finally:
            await proxy.close()
    result: dict[str, float | str] = {
        "loop": type(asyncio.get_running_loop()).__module__.partition(".")[0],
        "aim_psycopg_1_ratio": AIM_ONE,
    }
    for client, connections in CASES:
        figures = _compare(seen[client, connections, "direct"], seen[client, connections, "proxied"])
        result |= {f"{client}_{connections}_{name}": figure for name, figure in figures.items()}
    return result


async def _measure(env: Mapping[str, str], client_name: str, connections: int, seconds: float) -> dict[str, float]:
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "harness.bench.wire_client",
        client_name,
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
        # On one connection the same thing without the pauses in which others had the processor.
        "p50_ratio": round(_median([before["p50_us"] / after["p50_us"] for before, after in pairs]), 3),
        "added_p50_us": round(_median([after["p50_us"] - before["p50_us"] for before, after in pairs]), 1),
    }


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
