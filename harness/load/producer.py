"""The producer's own process: enqueues each job when it is due, whether or not anything else keeps up.

``python -m harness.load.producer`` reads its orders as one JSON line from standard input, reports as JSON lines to standard
output, and ends when standard input says "stop" or closes. A process of its own, because a late producer spoils a run.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import psycopg
from psycopg.conninfo import make_conninfo

from harness.load.schedule import Times

MOST_AT_ONCE = 200  # jobs in one transaction; what has piled up goes in several
REPORT_SECONDS = 0.2
RECONNECT_SECONDS = 0.05
ACKNOWLEDGE_SECONDS = 30.0
PARAMETERS = ("priority", "group", "run_at", "tenant")
SHORTEST_SLEEP_SECONDS = 0.0002


class Orders(msgspec.Struct, frozen=True):
    """What a producer is told. ``began`` is on the machine's monotonic clock, which its processes share."""

    began: float
    dues: str  # a .npy file of seconds from ``began``
    out: str  # a .npz file, written at the end: due, sent, acknowledged
    keys: tuple[str, int]  # prefix, digits
    enqueue_sql: str | None
    enqueue_command: tuple[str, ...]
    known_sql: str  # which of %(keys)s are there already: asked when a connection broke over them
    folder: str
    first: int = 0
    step: int = 1


class Sender(Protocol):
    """Who puts keys into the queue. Returns when they are acknowledged; raises OSError or psycopg.Error when that is unknown."""

    def send(self, keys: Sequence[str]) -> None:
        """All of them."""

    def lost(self, keys: Sequence[str]) -> list[str]:
        """After trouble: which of these are not there."""

    def close(self) -> None:
        """What it holds open, if anything."""


class BySql:
    """One connection, one transaction per batch, pipelined."""

    def __init__(self, dsn: str, enqueue_sql: str, known_sql: str) -> None:
        self._dsn = make_conninfo(dsn, application_name="queueproof producer", connect_timeout=5)
        self._enqueue, self._known = enqueue_sql.encode(), known_sql.encode()
        self._connection: psycopg.Connection[Any] | None = None

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
        return self._connection

    def send(self, keys: Sequence[str]) -> None:
        connection = self._connected()
        rows = [_parameters(key) for key in keys]
        if len(rows) == 1:
            connection.execute(self._enqueue, rows[0], prepare=True)
            return
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(self._enqueue, rows)

    def close(self) -> None:
        """The connection, if there is one."""
        if self._connection is not None:
            self._connection.close()

    def lost(self, keys: Sequence[str]) -> list[str]:
        self.close()
        there = {row[0] for row in self._connected().execute(self._known, {"keys": list(keys)}).fetchall()}
        return [key for key in keys if key not in there]


class ByCommand:
    """The subject's own enqueue command, kept running: a JSON line in for each job, a line out as its acknowledgement."""

    def __init__(self, command: Sequence[str], folder: str, environment: Mapping[str, str], asker: BySql) -> None:
        self._command, self._folder, self._environment = list(command), folder, dict(environment)
        self._asker = asker
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, keys: Sequence[str]) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps({"key": key}) + "\n" for key in keys).encode())
        left, deadline = len(keys), time.monotonic() + ACKNOWLEDGE_SECONDS
        while left > 0:
            ready, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
            said = os.read(process.stdout.fileno(), 65536) if ready else b""
            if not said:
                process.kill()
                process.wait()
                raise ConnectionError(f"the enqueue command acknowledged {len(keys) - left} of {len(keys)} jobs")
            left -= said.count(b"\n")

    def lost(self, keys: Sequence[str]) -> list[str]:
        return self._asker.lost(keys)

    def close(self) -> None:
        """The command's process and the connection."""
        self._asker.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _parameters(key: str) -> dict[str, str | None]:
    return {"key": key, **dict.fromkeys(PARAMETERS)}


class Producer:
    """Walks the schedule; ``stop`` makes it finish with what is due by then."""

    def __init__(self, orders: Orders, sender: Sender, dues: Times) -> None:
        self._orders, self._sender = orders, sender
        self._mine = np.arange(orders.first, len(dues), orders.step)
        self._dues = dues[self._mine]
        self.sent = np.full(len(self._mine), np.nan)
        self.acknowledged = np.full(len(self._mine), np.nan)
        self.trouble = 0
        self.last_trouble = ""
        self._next = 0
        self._stop_at: float | None = None
        self._told_at = 0.0
        self._told = 0

    def now(self) -> float:
        return time.monotonic() - self._orders.began

    def run(self) -> None:
        """Until stopped. Says how it goes several times a second."""
        while True:
            now = self.now()
            due = int(np.searchsorted(self._dues, now, side="right"))
            if self._stop_at is not None:
                due = min(due, int(np.searchsorted(self._dues, self._stop_at, side="right")))
                if self._next >= due and now >= self._stop_at:
                    return
            if self._next < due:
                self._send(range(self._next, min(due, self._next + MOST_AT_ONCE)))
            elif self._next >= len(self._dues):
                self._rest(REPORT_SECONDS)
            else:
                self._rest(float(self._dues[self._next]) - now)
            if self.now() - self._told_at >= REPORT_SECONDS:
                self._rest(0.0)
                self._tell()

    def _send(self, batch: range) -> None:
        keys = [self._key(n) for n in batch]
        self.sent[batch.start : batch.stop] = self.now()
        while keys:
            try:
                self._sender.send(keys)
            except (psycopg.Error, OSError) as error:
                if isinstance(error, psycopg.errors.SyntaxError | psycopg.errors.UndefinedTable):
                    raise
                self.trouble += 1
                self.last_trouble = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                keys = self._ask_until_known(keys)
                continue
            break
        self.acknowledged[batch.start : batch.stop] = self.now()
        self._next = batch.stop

    def _ask_until_known(self, keys: list[str]) -> list[str]:
        """The connection broke over these: a commit may have happened. Ask as soon as somebody answers."""
        while True:
            try:
                return self._sender.lost(keys)
            except (psycopg.Error, OSError):
                self._tell()
                self._rest(RECONNECT_SECONDS)
                if self._stop_at is not None and self.now() > self._stop_at + ACKNOWLEDGE_SECONDS:
                    raise

    def _rest(self, seconds: float) -> None:
        """Wait on standard input, where a stop may come from. Sub-millisecond waits are slept, so that none is late by a tick."""
        if 0 < seconds < 0.001:
            time.sleep(max(seconds, SHORTEST_SLEEP_SECONDS))
            return
        if self._stop_at is not None:
            time.sleep(max(seconds, 0.0))
            return
        ready, _, _ = select.select([sys.stdin], [], [], max(min(seconds, REPORT_SECONDS), 0.0))
        if ready:
            sys.stdin.readline()  # "stop", or the end: the harness is gone
            self._stop_at = self.now()

    def _tell(self) -> None:
        count = self._next
        recent = self.sent[self._told : count] - self._dues[self._told : count]
        report = {
            "at": self.now(),
            "sent": count,
            "acknowledged": int(np.count_nonzero(~np.isnan(self.acknowledged[:count]))),
            "lag_ms": round(float(recent.max()) * 1000, 3) if len(recent) else 0.0,
            "trouble": self.trouble,
            "last_trouble": self.last_trouble,
        }
        self._told_at, self._told = self.now(), count
        print(json.dumps(report), flush=True)  # noqa: T201  this is how the parent hears of it

    def save(self) -> None:
        """What was sent, for the analysis."""
        count = self._next
        with Path(self._orders.out).open("wb") as file:
            np.savez(
                file,
                job=self._mine[:count],
                due=self._dues[:count],
                sent=self.sent[:count],
                acknowledged=self.acknowledged[:count],
            )
        self._tell()

    def _key(self, n: int) -> str:
        prefix, digits = self._orders.keys
        return f"{prefix}{int(self._mine[n]):0{digits}d}"


def sender_for(orders: Orders, environment: Mapping[str, str]) -> Sender:
    """By SQL or by the subject's own command, as it declares."""
    by_sql = BySql(environment["DATABASE_URL"], orders.enqueue_sql or "select", orders.known_sql)
    if orders.enqueue_sql is not None:
        return by_sql
    return ByCommand(orders.enqueue_command, orders.folder, environment, by_sql)


def main() -> int:
    """Exit code 0, or 3 with one line on standard error."""
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    producer = Producer(orders, sender_for(orders, os.environ), np.load(orders.dues))
    try:
        producer.run()
        producer.save()
    except (psycopg.Error, OSError) as error:
        sys.stderr.write(f"the producer gave up: {str(error).strip()}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
