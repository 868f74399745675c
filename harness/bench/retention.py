"""What retention costs the claims beside it: a million finished jobs archived and deleted while one claimer claims flat out.

Retention rests by turns, so that claims with and without it are measured within the same seconds, on the same tables.
"""

import asyncio
import os
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from harness.bench.claim import claim_times, nodes
from harness.bench.queue_tables import Connection, connected, install, own_server, quantile, run_own
from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address
from reference_queue.retention import retain
from reference_queue.statements import Statements

AIM = 1.5
KEEP = timedelta(hours=1)  # the filled jobs ended a day ago
PAUSE_SECONDS = 0.01  # between two batches; the command's own default is 0.05, which is kinder still
LEAST_SECONDS = 30.0  # are measured, however long the fill took
STEP_SECONDS = 30.0  # no single step of retention takes that long


@dataclass(frozen=True)
class Scale:
    """How large a run is. On a slow machine it ends, incomplete and said so, ``ends_after_seconds`` from its start."""

    finished: int = 1_000_000
    pending: int = 10_000
    running: int = 1_000
    batch: int = 1000
    with_seconds: float = 6.0
    without_seconds: float = 1.5
    ends_after_seconds: float = 225.0


SMALL = Scale(6_000, 1_000, 100, 200, 0.3, 0.2, 30.0)


class Retention(threading.Thread):
    """The packaged retention on a connection of its own, as its command runs it: with its pause between two batches."""

    def __init__(self, address: Address, batch: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._batch = batch
        self._may_go_on = threading.Event()
        self._rests = threading.Event()
        self._rests.set()
        self._ends = False
        self.ended = threading.Event()
        self.deleted = 0
        self.longest_step_seconds = 0.0

    def run(self) -> None:
        try:
            self._pause(0)
            with connected(self._address) as connection:
                began = time.monotonic()
                for step in retain(connection, KEEP, batch=self._batch, pause_seconds=PAUSE_SECONDS, pause=self._pause):
                    self.longest_step_seconds = max(self.longest_step_seconds, time.monotonic() - began)
                    self.deleted += step.deleted
                    if self._ends:
                        break
                    began = time.monotonic()
        finally:
            self.ended.set()
            self._rests.set()

    def go_on(self) -> None:
        """Work until told to rest."""
        self._rests.clear()
        self._may_go_on.set()

    def rest(self) -> None:
        """Return when the step at hand has ended."""
        self._may_go_on.clear()
        if not self._rests.wait(STEP_SECONDS):
            raise EnvironmentFailed(
                f"a step of retention took more than {STEP_SECONDS:g} s; is the machine overloaded?"
            )

    def end(self) -> None:
        """End after the step at hand."""
        self._ends = True
        self.go_on()
        self.join(STEP_SECONDS)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)
        if not self._may_go_on.is_set():
            self._rests.set()
            self._may_go_on.wait()


async def run(*, small: bool = False) -> dict[str, Any]:
    """On an embedded server of our own; below four minutes."""
    scale = SMALL if small else Scale()
    began = time.monotonic()
    load = os.getloadavg()[0]
    async with own_server() as cluster:
        address = await cluster.create_database("retention")
        with connected(address) as connection:
            install(connection, finished=scale.finished, pending=scale.pending, running=scale.running, audited=True)
            filled_seconds = time.monotonic() - began
            measured = await asyncio.to_thread(_measure, scale, address, connection, began)
    return {
        "name": "retention",
        "server": f"PostgreSQL {cluster.version}, {cluster.source}, fsync off",
        "aim": f"claim p99 with retention over without ≤ {AIM}",
        "met": measured["p99_ratio_with_over_without"] <= AIM,
        **measured,
        "machine": {"cores": os.cpu_count() or 1, "load_before": round(load, 1)},
        "seconds": {"fill": round(filled_seconds, 1), "all": round(time.monotonic() - began, 1)},
    }


def _measure(scale: Scale, address: Address, connection: Connection, began_at: float) -> dict[str, Any]:
    texts = Statements()
    scans = _scans(connection, texts, scale.batch)
    taken: dict[str, list[float]] = {"without": [], "with": []}
    retention = Retention(address, scale.batch)
    retention.start()
    until = max(began_at + scale.ends_after_seconds, time.monotonic() + LEAST_SECONDS)
    worked_seconds = 0.0
    try:
        while not retention.ended.is_set() and time.monotonic() < until:
            taken["without"] += _window(scale, connection, texts, scale.without_seconds)
            run_own(connection, "fill_pending", {"jobs": scale.pending})
            retention.go_on()
            began = time.monotonic()
            taken["with"] += _window(scale, connection, texts, scale.with_seconds, retention.ended)
            retention.rest()
            worked_seconds += time.monotonic() - began
            run_own(connection, "fill_pending", {"jobs": scale.pending})
        is_complete = retention.ended.is_set()
    finally:
        retention.end()
    (left,) = run_own(connection, "archived")
    if left["archived"] != retention.deleted or left["archived"] + left["left_behind"] != scale.finished:
        raise EnvironmentFailed(f"retention says {retention.deleted} jobs, and the tables say {left}")
    figures = {
        name: {
            "claims": len(times),
            "p50_ms": round(quantile(times, 0.5) * 1000, 3),
            "p99_ms": round(quantile(times, 0.99) * 1000, 3),
        }
        for name, times in taken.items()
    }
    return {
        "claims": figures,
        "p50_ratio_with_over_without": round(figures["with"]["p50_ms"] / figures["without"]["p50_ms"], 3),
        "p99_ratio_with_over_without": round(figures["with"]["p99_ms"] / figures["without"]["p99_ms"], 3),
        "retained_jobs": retention.deleted,
        "retained_audit_rows": int(left["archived_audit"]),
        "is_complete": is_complete,
        "retention_jobs_per_second": round(retention.deleted / worked_seconds),
        "batch": scale.batch,
        "pause_ms": PAUSE_SECONDS * 1000,
        "plan": scans,
        "longest_step_ms": round(retention.longest_step_seconds * 1000, 1),
    }


def _scans(connection: Connection, texts: Statements, batch: int) -> list[str]:
    """How a batch finds its rows, as it is planned on the full tables."""
    row = connection.execute(
        f"explain (format json) {texts.text('retain', batch)}", {"after": 0, "keep": KEEP}
    ).fetchone()
    assert row is not None
    told = {
        f"{node['Node Type']} on {node['Relation Name']}"
        + (f" using {node['Index Name']}" if "Index Name" in node else "")
        for node in nodes(row["QUERY PLAN"][0]["Plan"])
        if "Scan" in node["Node Type"] and "Relation Name" in node
    }
    return sorted(told)


def _window(
    scale: Scale, connection: Connection, texts: Statements, seconds: float, ended: threading.Event | None = None
) -> list[float]:
    """Claims, one after the other, for so long, or until nothing runs beside them any more, or half of what is due is gone."""
    until = time.monotonic() + seconds
    taken: list[float] = []
    while time.monotonic() < until and len(taken) < scale.pending // 2 and not (ended and ended.is_set()):
        taken += claim_times(connection, texts, 10)
    return taken
