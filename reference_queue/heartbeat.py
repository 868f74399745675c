"""Renews every lease that the process holds, from a thread and a connection of its own.

Neither a blocked event loop, nor an exhausted pool, nor a statement that waits for a lock can stop it; only the whole process
can. The same connection listens for wake-ups, since it idles between two beats.
"""

import contextlib
import logging
import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from reference_queue.grants import Grant
from reference_queue.held import Held
from reference_queue.sessions import parameters, prepare
from reference_queue.settings import Settings
from reference_queue.statements import Statements

log = logging.getLogger("reference_queue")

Lost = Callable[[Grant, str], None]


class Heartbeat(threading.Thread):
    """``lost`` is told of each grant that is ours no more; ``woken`` of each hint, and once listening has begun."""

    def __init__(
        self,
        settings: Settings,
        statements: Statements,
        held: Held,
        lost: Lost,
        woken: Callable[[], None],
        counted: Callable[[int], None],
    ) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._settings = settings
        self._statements = statements
        self._held = held
        self._lost = lost
        self._woken = woken
        self._counted = counted
        self._over = threading.Event()
        self._bell_read, self._bell_write = socket.socketpair()

    def stop(self) -> None:
        """Only once the last handler has ended."""
        self._over.set()
        self._bell_write.send(b"x")

    def run(self) -> None:
        wait_seconds = 0.05
        while not self._over.is_set():
            try:
                with self._connect() as connection:
                    wait_seconds = 0.05
                    self._beat_on(connection)
            except (psycopg.Error, OSError) as error:
                log.warning("heartbeat connection=%s", type(error).__name__)
                self._pause(random.uniform(wait_seconds / 2, wait_seconds))
                wait_seconds = min(wait_seconds * 2, max(self._settings.heartbeat_seconds, 1.0))
        self._bell_read.close()
        self._bell_write.close()

    def _connect(self) -> psycopg.Connection[DictRow]:
        connection: psycopg.Connection[DictRow] = psycopg.Connection.connect(
            self._settings.conninfo,
            autocommit=True,
            row_factory=dict_row,
            **parameters(f"{self._settings.worker} beat"),
        )
        prepare(connection)
        return connection

    def _beat_on(self, connection: psycopg.Connection[DictRow]) -> None:
        # Listening comes before the worker's next look at the table: the other way round, a wake-up could fall between.
        connection.execute(self._statements.text("listen"))
        self._woken()
        next_beat = time.monotonic() + self._settings.heartbeat_seconds
        while not self._over.is_set():
            now = time.monotonic()
            if now >= next_beat:
                next_beat = now + self._settings.heartbeat_seconds
                self._renew(connection)
            self._wait(connection, next_beat - time.monotonic())

    def _renew(self, connection: psycopg.Connection[DictRow]) -> None:
        grants = self._held.all()
        if not grants:
            return
        sent = time.monotonic()
        values = {
            "ids": [grant.id for grant in grants],
            "versions": [grant.version for grant in grants],
            "worker": self._settings.worker,
            "lease": self._settings.lease,
            "longest_run": self._settings.longest_run,
        }
        with _deadline(connection, self._settings.deadline_seconds):
            rows = connection.execute(self._statements.text("renew"), values).fetchall()
        self._heed(grants, rows, sent)

    def _heed(self, grants: Sequence[Grant], rows: Sequence[dict[str, Any]], sent: float) -> None:
        fates = {row["id"]: row["fate"] for row in rows}
        renewed = [grant.id for grant in grants if fates.get(grant.id) == "renewed"]
        self._counted(len(renewed))
        self._held.renewed(renewed, sent + self._settings.lease_seconds)
        for grant in grants:
            fate = fates.get(grant.id, "lost")
            if fate in {"lost", "over"}:
                self._lost(grant, fate)

    def _wait(self, connection: psycopg.Connection[DictRow], wait_seconds: float) -> None:
        readable, _, _ = select.select([connection.fileno(), self._bell_read.fileno()], [], [], max(wait_seconds, 0))
        if connection.fileno() in readable:
            connection.pgconn.consume_input()
            hinted = False
            while connection.pgconn.notifies() is not None:
                hinted = True
            if hinted:
                self._woken()

    def _pause(self, wait_seconds: float) -> None:
        select.select([self._bell_read], [], [], wait_seconds)


@contextlib.contextmanager
def _deadline(connection: psycopg.Connection[Any], deadline_seconds: float) -> Iterator[None]:
    """Shut the connection's socket when no answer comes in time; the statement then ends with an error."""
    duplicate = socket.socket(fileno=os.dup(connection.fileno()))

    def give_up() -> None:
        with contextlib.suppress(OSError):
            duplicate.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(deadline_seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        duplicate.close()
