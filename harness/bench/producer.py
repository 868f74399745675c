"""The open producer at 3,000 jobs a second with the database stalled for five: how late it is, and whether anything is lost.

A stall delays no arrival: jobs that fall due meanwhile are sent late, and that counts from their intended time. Lateness is
told apart for the jobs that the stall did not touch, and for those that it did.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from harness.load.plan import read_plan
from harness.load.producer import Orders
from harness.load.producing import Produced, ProducerProcess
from harness.load.schedule import due_times
from harness.load.trace import DIGITS
from harness.postgres.cluster import open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog

RATE_PER_SECOND = 3000
AIM_LAG_MS = 20.0
CALM_SECONDS, STALL_SECONDS, AFTER_SECONDS = 5.0, 5.0, 8.0
LEAD_SECONDS = 2.5
PREFIX = "bench-"


async def run(rate: int = RATE_PER_SECOND, stall_seconds: float = STALL_SECONDS, seed: int = 6) -> dict[str, Any]:
    """Five seconds, a stall, eight seconds; every job is then looked up in the table."""
    whole = CALM_SECONDS + stall_seconds + AFTER_SECONDS
    plan = read_plan(arrival=f"{rate}/s", service="1ms", slots="1", outage="1s")
    dues = due_times(plan, whole + 1, seed)
    with tempfile.TemporaryDirectory(prefix="queueproof-bench-") as made, Watchdog() as watchdog:
        folder = Path(made)
        async with open_cluster(parse_server("embedded"), watchdog, folder) as cluster:
            address = await cluster.create_database("bench")
            async with await psycopg.AsyncConnection.connect(address.dsn(), autocommit=True) as connection:
                await connection.execute(
                    "create table job (id bigint generated always as identity, key text primary key)"
                )
                np.save(folder / "dues.npy", dues)
                producer = ProducerProcess()
                began = time.monotonic() + LEAD_SECONDS
                orders = Orders(
                    began=began,
                    dues=str(folder / "dues.npy"),
                    out=str(folder / "produced.npz"),
                    keys=(PREFIX, DIGITS),
                    enqueue_sql="insert into job (key) values (%(key)s)",
                    enqueue_command=(),
                    known_sql="select key from job where key = any (%(keys)s)",
                    folder=made,
                )
                environment = {**os.environ, "DATABASE_URL": address.url()}
                await producer.start(orders, environment, watchdog, folder / "producer.log")
                try:
                    await _until(began + CALM_SECONDS)
                    async with connection.transaction():
                        await connection.execute("lock table job in access exclusive mode")
                        stalled = time.monotonic() - began
                        await _until(began + stalled + stall_seconds)
                    await _until(began + stalled + stall_seconds + AFTER_SECONDS)
                    produced = await producer.stop()
                finally:
                    await producer.kill()
                cursor = await connection.execute("select count(*), count(distinct key) from job")
                row = await cursor.fetchone()
    assert row is not None
    return _told(produced, dues, stalled, stall_seconds, int(row[0]), rate)


async def _until(at: float) -> None:
    await asyncio.sleep(max(at - time.monotonic(), 0.0))


def _told(
    produced: Produced, dues: np.ndarray, stalled: float, stall_seconds: float, rows: int, rate: int
) -> dict[str, Any]:
    lag = produced.sent - produced.due
    # The stall is over for the producer when it is on time again.
    after = np.flatnonzero((produced.due > stalled + stall_seconds) & (lag < AIM_LAG_MS / 1000))
    caught_up = float(produced.due[after[0]]) if len(after) else float("inf")
    touched = (produced.due >= stalled - AIM_LAG_MS / 1000) & (produced.due <= caught_up)
    calm = lag[~touched] * 1000
    latency = (produced.acknowledged - produced.due) * 1000
    due = int(np.searchsorted(dues, produced.due[-1], side="right"))
    p99 = float(np.quantile(calm, 0.99))
    lost = due - rows
    return {
        "name": "producer",
        "rate_per_second": rate,
        "aim": f"99 % of the jobs that the stall did not touch sent within {AIM_LAG_MS:g} ms of their time, none lost",
        "met": p99 < AIM_LAG_MS and lost == 0,
        "jobs": produced.count,
        "lost": lost,
        "lag_p50_ms": round(float(np.quantile(calm, 0.5)), 3),
        "lag_p99_ms": round(p99, 3),
        "stalled_seconds": stall_seconds,
        "jobs_touched_by_the_stall": int(touched.sum()),
        "caught_up_after_the_stall_ms": round((caught_up - stalled - stall_seconds) * 1000, 1),
        "latency_from_intended_time_ms": {
            "p50": round(float(np.quantile(latency, 0.5)), 3),
            "p99": round(float(np.quantile(latency, 0.99)), 1),
            "max": round(float(latency.max()), 1),
        },
    }
