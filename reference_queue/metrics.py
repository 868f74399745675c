"""What a worker counts, and the queue's own numbers, as Prometheus text. Each metric says what to do when it rises.

Jobs in the local buffer and jobs that execute are told apart. Skipped rows are a sampled estimate, and called so.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from reference_queue.sessions import NothingHappened, Sessions, Unknown
from reference_queue.statements import Statements

SECONDS_BETWEEN_SAMPLES = 5.0
REQUEST_SECONDS = 5.0
MOST_REQUEST_BYTES = 64 * 1024

log = logging.getLogger("reference_queue")


@dataclass(frozen=True)
class Metric:
    """One metric: its kind, its label's name if it has one, and what to do when it rises."""

    name: str
    kind: str
    label: str
    advice: str


METRICS = (
    Metric("claim_seconds_sum", "counter", "statement", "Time in claims. Rising per claim: look at dead rows and old snapshots (n_dead_tup, backend_xmin)."),
    Metric("claims_total", "counter", "statement", "Claims sent. Many more than jobs: raise the poll time."),
    Metric("claimed_jobs_total", "counter", "statement", "Jobs granted. Over claims_total it is the batch that was found."),
    Metric("claim_conflicts_total", "counter", "sqlstate", "Claims rolled back and tried again. Rising: stricter isolation than needed, or many claimers of one tenant."),
    Metric("claim_to_start_seconds_sum", "counter", "", "Time that jobs waited in the local buffer. Rising: lower the buffer."),
    Metric("started_jobs_total", "counter", "", "Handlers started."),
    Metric("completed_jobs_total", "counter", "", "Jobs done by this worker. No rise while the oldest age rises: it stands still."),
    Metric("failures_total", "counter", "class", "Failed attempts by class. Deadlocks: order the locks. Disconnects: look at the network. Content: look at who enqueues."),
    Metric("renewals_total", "counter", "", "Leases renewed. No rise while jobs execute: heartbeats do not get through."),
    Metric("takeovers_total", "counter", "", "Jobs taken over. Rising: workers die or stall; look for kills, pauses and too short a lease."),
    Metric("lost_total", "counter", "fate", "Grants of this worker that were lost. Rising: its heartbeats are late; raise the lease or lower the slots."),
    Metric("executing_jobs", "gauge", "", "Slots in use. All of them while the oldest age rises: more slots."),
    Metric("buffered_jobs", "gauge", "", "Claimed and not started. High while others idle: lower the buffer."),
    Metric("oldest_runnable_seconds", "gauge", "kind", "How late the oldest due job is. Rising with completions: more slots; without: a standstill."),
    Metric("orphans", "gauge", "", "Running jobs whose lease is over. Lasting: no worker for that kind is alive."),
    Metric("backlog_jobs", "gauge", "class", "Unfinished jobs by their last failure's class. Rising: that dependency fails."),
    Metric("skipped_rows_estimate", "gauge", "", "Of the first hundred due rows, those that others have locked (sampled). High: too many claimers, or too large batches."),
)  # fmt: skip

BY_NAME = {metric.name: metric for metric in METRICS}


@dataclass
class Metrics:
    """Counters of one worker. Gauges are read when asked for."""

    counts: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)
    sampled: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, name: str, amount: float = 1, label: str = "") -> None:
        self.counts[BY_NAME[name].name, label] += amount

    def text(self) -> str:
        """The exposition format, every metric present, so that an alert on it can be written before it ever happened."""
        values = {**self.counts, **self.sampled, **{(name, ""): read() for name, read in self.gauges.items()}}
        lines: list[str] = []
        for metric in METRICS:
            full = f"reference_queue_{metric.name}"
            lines += [f"# HELP {full} {metric.advice}", f"# TYPE {full} {metric.kind}"]
            found = sorted((label, value) for (name, label), value in values.items() if name == metric.name)
            lines += [
                _sample(full, metric.label, label, value)
                for label, value in found or ([("", 0.0)] if not metric.label else [])
            ]
        return "\n".join(lines) + "\n"


def _sample(name: str, label_name: str, label: str, value: float) -> str:
    if not label_name:
        return f"{name} {value:g}"
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}{{{label_name}="{escaped}"}} {value:g}'


SAMPLES = {"age": "oldest_runnable_seconds", "orphans": "orphans", "backlog": "backlog_jobs"}


class Endpoint:
    """Answers ``GET`` with the metrics, on a loopback port unless told otherwise. Samples the database at most every 5 s."""

    def __init__(self, metrics: Metrics, sessions: Sessions, statements: Statements) -> None:
        self._metrics = metrics
        self._sessions = sessions
        self._statements = statements
        self._next_sample = 0.0
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        self._server = await asyncio.start_server(self._answer, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await reader.readuntil(b"\r\n\r\n")
                await self._sample()
                body = self._metrics.text().encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away or talks nonsense is none of the queue's business
        finally:
            writer.close()

    async def _sample(self) -> None:
        if time.monotonic() < self._next_sample:
            return
        self._next_sample = time.monotonic() + SECONDS_BETWEEN_SAMPLES
        try:
            rows = await self._sessions.run(self._statements.text("metrics"), {})
            locked = await self._sessions.run(self._statements.text("estimate_skipped"), {})
        except (NothingHappened, Unknown, psycopg.Error) as error:
            # Stale numbers would look healthy: rather none.
            self._metrics.sampled = {}
            log.warning("metrics sample failed=%s", type(error).__name__)
            return
        self._metrics.sampled = {(SAMPLES[row["metric"]], row["label"]): float(row["value"]) for row in rows}
        self._metrics.sampled["skipped_rows_estimate", ""] = float(locked[0]["locked"])
