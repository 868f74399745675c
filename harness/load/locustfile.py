"""Locust as a front: ``locust -f`` this file, with its web page, headless, ``--processes``, or a master and workers elsewhere.

Arrivals stay open: users do not pace themselves, they take the next job of a schedule that was made before and wait for its
time. Names carry the phase, so that Locust's own tables and charts show phases apart. Response times count from the intended time.
"""

from locust import LoadTestShape, User, constant, events, task  # noqa: I001  first: it makes all others cooperative

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import gevent  # type: ignore[import-untyped]
import msgspec
import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import waiting

from harness.load.producer import BySql, Orders

if getattr(waiting.wait, "__name__", "") == "wait_c":
    raise SystemExit(
        "psycopg was imported before gevent had patched the standard library, or PSYCOPG_WAIT_FUNC is wait_c: its users would"
        " wait for one another. Import locust first, and unset the variable"
    )

USERS = int(os.environ.get("QUEUEPROOF_LOCUST_USERS", "8"))
ORDERS, STATUS = "QUEUEPROOF_ORDERS", "QUEUEPROOF_STATUS"
NO_ORDERS = (
    f"{ORDERS} is not set: there is no schedule to send. queueproof load --front locust (locust-web, locust-master:N) starts this"
    " file with its orders; on other machines start it with --worker only\n"
)
TELL_SECONDS = 0.2
LONGEST_SLEEP_SECONDS = 0.5


class Schedule:
    """This process's share of the jobs. All its users take from it; nobody waits for anybody."""

    def __init__(self) -> None:
        self.orders: Orders | None = None
        self.phase = "warm-up"
        self.stop_at: float | None = None
        self.age_ms = 0.0
        self.done = False
        self._jobs: NDArray[Any] = np.empty(0)
        self._dues = self.sent = self.acknowledged = np.empty(0)
        self._next = 0
        self._under_way = 0
        self._offset = 0.0

    def begin(self, orders: Orders, dues: np.ndarray, began_wall: float, index: int, count: int) -> None:
        """Take every ``count``-th job. On a machine with another monotonic clock the wall clocks are what is shared."""
        self.orders = orders
        self._jobs = np.arange(orders.first + index, len(dues), count)
        self._dues = dues[self._jobs]
        self.sent = np.full(len(self._jobs), np.nan)
        self.acknowledged = np.full(len(self._jobs), np.nan)
        same_clock = abs((time.time() - began_wall) - (time.monotonic() - orders.began)) < 0.01
        self._offset = orders.began if same_clock else time.monotonic() - (time.time() - began_wall)

    def now(self) -> float:
        return time.monotonic() - self._offset

    def take(self) -> int | None:
        """The next job, for whoever asks; None when there is none to be sent (yet)."""
        if self.orders is None or self._next >= len(self._dues):
            return None
        due = float(self._dues[self._next])
        if self.stop_at is not None and due > self.stop_at:
            self.done = self._under_way == 0
            return None
        n, self._next = self._next, self._next + 1
        self._under_way += 1
        return n

    def wait(self, n: int) -> bool:
        """Until job n is due; False when the run was stopped before."""
        while (left := float(self._dues[n]) - self.now()) > 0:
            if self.stop_at is not None and self._dues[n] > self.stop_at:
                return False
            gevent.sleep(min(left, LONGEST_SLEEP_SECONDS))
        return self.stop_at is None or bool(self._dues[n] <= self.stop_at)

    def key(self, n: int) -> str:
        assert self.orders is not None
        prefix, digits = self.orders.keys
        return f"{prefix}{int(self._jobs[n]):0{digits}d}"

    def finish(self, n: int, sent: float | None) -> float:
        """Note that job n is acknowledged (``sent`` None: it was never sent). Returns its latency in ms."""
        self._under_way -= 1
        if sent is None:
            return 0.0
        self.sent[n], self.acknowledged[n] = sent, self.now()
        return float(self.acknowledged[n] - self._dues[n]) * 1000

    def progress(self) -> dict[str, Any]:
        """As the parent wants to hear it."""
        known = ~np.isnan(self.sent)
        recent = self.sent[known][-200:] - self._dues[known][-200:]
        lag = round(float(recent.max()) * 1000, 3) if len(recent) else 0.0
        acknowledged = int(np.count_nonzero(~np.isnan(self.acknowledged)))
        return {"at": self.now(), "sent": int(known.sum()), "acknowledged": acknowledged, "lag_ms": lag, "trouble": TROUBLE.count, "last_trouble": TROUBLE.last}  # fmt: skip

    def produced(self) -> dict[str, list[float]]:
        """All that was sent."""
        known = ~np.isnan(self.acknowledged)
        columns = {"job": self._jobs, "due": self._dues, "sent": self.sent, "acknowledged": self.acknowledged}
        return {name: [float(value) for value in column[known]] for name, column in columns.items()}


class Trouble:
    """What went wrong with the database, counted."""

    count, last = 0, ""

    def note(self, error: Exception) -> None:
        lines = str(error).strip().splitlines()
        self.count, self.last = self.count + 1, lines[0] if lines else type(error).__name__


SCHEDULE, TROUBLE = Schedule(), Trouble()
SHARES: dict[str, dict[str, Any]] = {}  # on a master: each worker's latest word
PARTS: list[dict[str, list[float]]] = []  # and, at the end, what each has sent


class Producers(User):
    """One connection. Its task is one job: take, wait, enqueue, tell Locust."""

    wait_time = constant(0)

    def on_start(self) -> None:
        self._sender: BySql | None = None

    @task
    def enqueue(self) -> None:
        n = SCHEDULE.take()
        if n is None:
            gevent.sleep(0.02)
            return
        if not SCHEDULE.wait(n):
            SCHEDULE.finish(n, None)
            return
        phase, sent, key = SCHEDULE.phase, SCHEDULE.now(), SCHEDULE.key(n)
        error = self._send(key)
        latency = SCHEDULE.finish(n, sent)
        self.environment.events.request.fire(
            request_type="ENQUEUE",
            name=f"{phase}: enqueue",
            response_time=latency,
            response_length=0,
            exception=error,
            context={},
        )

    def _send(self, key: str) -> Exception | None:
        """Until it is there. What the database said on the way is told, and is no reason to lose a job."""
        assert SCHEDULE.orders is not None
        if self._sender is None:
            self._sender = BySql(
                os.environ["DATABASE_URL"], SCHEDULE.orders.enqueue_sql or "select", SCHEDULE.orders.known_sql
            )
        keys, first = [key], None
        while keys:
            try:
                if first is not None:
                    keys = self._sender.lost(keys)
                if keys:
                    self._sender.send(keys)
                return first
            except (psycopg.Error, OSError) as error:
                first = first or error
                TROUBLE.note(error)
                gevent.sleep(0.05)
        return first


class Monitor(User):
    """One of it: tells Locust the age of the oldest job, phase by phase, so that its charts have it."""

    fixed_count = 1
    wait_time = constant(1)

    @task
    def look(self) -> None:
        self.environment.events.request.fire(
            request_type="QUEUE", name=f"{SCHEDULE.phase}: oldest age", response_time=SCHEDULE.age_ms, response_length=0, exception=None, context={},
        )  # fmt: skip


class Phases(LoadTestShape):
    """As many users as there are, until everything is sent; how many jobs arrive is the schedule's business."""

    def tick(self) -> tuple[int, float] | None:
        return None if SCHEDULE.done else (USERS + 1, USERS + 1)


# -- orders and words between the parent, a master and its workers


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _begin(environment: Any, **_: Any) -> None:
    kind = type(environment.runner).__name__
    if kind == "WorkerRunner":
        return
    if ORDERS not in os.environ:
        sys.stderr.write(NO_ORDERS)
        environment.process_exit_code = 2
        environment.runner.quit()
        return
    if kind == "MasterRunner":
        gevent.spawn(_send_orders, environment)
        return
    orders, dues, began_wall = _orders()
    SCHEDULE.begin(orders, dues, began_wall, 0, 1)
    gevent.spawn(_lead, environment, 0, orders.out)


def _send_orders(environment: Any) -> None:
    """To the workers that have joined, a share for each; the parent may write its orders only when it knows that they have."""
    workers = list(environment.runner.clients)
    print(json.dumps({"joined": len(workers)}), flush=True)  # noqa: T201  this is how the parent hears of it
    while not Path(os.environ[ORDERS]).exists():
        gevent.sleep(0.05)
    orders, dues, began_wall = _orders()
    for index, worker in enumerate(workers):
        message = {
            "orders": msgspec.json.encode(orders).decode(), "dues": dues.tolist(), "began_wall": began_wall, "index": index, "count": len(workers),
        }  # fmt: skip
        environment.runner.send_message("orders", message, client_id=worker)
    _lead(environment, len(workers), orders.out)
    environment.runner.quit()  # tells the workers to go


def _orders() -> tuple[Orders, NDArray[Any], float]:
    orders = msgspec.json.decode(Path(os.environ[ORDERS]).read_bytes(), type=Orders)
    return orders, np.load(orders.dues), time.time() - (time.monotonic() - orders.began)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _listen(environment: Any, **_: Any) -> None:
    kind = type(environment.runner).__name__
    if kind == "WorkerRunner":
        environment.runner.register_message("orders", _take_orders)
        environment.runner.register_message("status", lambda msg, **_: _take_status(msg.data))
    elif kind == "MasterRunner":
        environment.runner.register_message("progress", lambda msg, **_: SHARES.__setitem__(msg.node_id, msg.data))
        environment.runner.register_message("produced", lambda msg, **_: PARTS.append(msg.data))


def _take_orders(environment: Any, msg: Any, **_: Any) -> None:
    data = msg.data
    orders = msgspec.json.decode(data["orders"].encode(), type=Orders)
    SCHEDULE.begin(orders, np.array(data["dues"]), data["began_wall"], data["index"], data["count"])

    def report() -> None:
        while not SCHEDULE.done:
            environment.runner.send_message("progress", SCHEDULE.progress())
            gevent.sleep(TELL_SECONDS)
        environment.runner.send_message("produced", SCHEDULE.produced())

    gevent.spawn(report)


def _take_status(status: dict[str, Any]) -> None:
    SCHEDULE.phase, SCHEDULE.age_ms = status.get("phase", SCHEDULE.phase), status.get("age_ms", 0.0)
    SCHEDULE.stop_at = status.get("stop_at")


def _lead(environment: Any, workers: int, out: str) -> None:
    """Pass on what the parent writes, tell it what the users do, and write down what was sent when all is sent."""
    while not SCHEDULE.done:
        status = _status()
        _take_status(status)
        if workers:
            environment.runner.send_message("status", status)
            SCHEDULE.done = len(PARTS) >= workers
            reports = list(SHARES.values())
        else:
            reports = [SCHEDULE.progress()]
        if reports:
            whole = {name: sum(report[name] for report in reports) for name in ("sent", "acknowledged", "trouble")}
            last = {
                "at": reports[0]["at"],
                "lag_ms": max(report["lag_ms"] for report in reports),
                "last_trouble": reports[0]["last_trouble"],
            }
            print(json.dumps(whole | last), flush=True)  # noqa: T201  this is how the parent hears of it
        gevent.sleep(TELL_SECONDS)
    parts = PARTS if workers else [SCHEDULE.produced()]
    columns = {
        name: np.concatenate([np.array(part[name]) for part in parts])
        for name in ("job", "due", "sent", "acknowledged")
    }
    order = np.argsort(columns["job"])
    with Path(out).open("wb") as file:
        np.savez(
            file,
            job=columns["job"][order],
            due=columns["due"][order],
            sent=columns["sent"][order],
            acknowledged=columns["acknowledged"][order],
        )
    print(json.dumps({"saved": True}), flush=True)  # noqa: T201


def _status() -> dict[str, Any]:
    try:
        status = json.loads(Path(os.environ[STATUS]).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError):
        return {}
    return status if isinstance(status, dict) else {}
