"""Puts jobs in: inside the caller's own transaction, or safely on its own when the reply to a commit gets lost.

The operation key is made by the caller and is the job's identity for good: enqueueing it twice adds one job.
"""

import datetime as dt
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from reference_queue.statements import Statements

LONGEST_KEY_BYTES = 8192
LONGEST_GROUP_BYTES = 1024
LONGEST_TENANT_BYTES = 256
MOST_PAYLOAD_BYTES = 15 * 1024 * 1024
LEAST_PRIORITY, MOST_PRIORITY = -(2**31), 2**31 - 1
DUPLICATE_TRIES = 5
UNKNOWN_TRIES = 8
SECONDS_BETWEEN_WAKES = 0.05


class BadJob(ValueError):
    """The job cannot be put in as it is. One line per mistake."""


@dataclass(frozen=True)
class NewJob:
    """A job to put in. Lower priority numbers run first; ``run_at`` must say its time zone."""

    operation_key: str
    kind: str = "default"
    payload: Any = None
    priority: int = 0
    run_at: dt.datetime | None = None
    group_key: str | None = None
    tenant: str | None = None
    business_key: str | None = None
    max_attempts: int = 3

    def values(self) -> dict[str, Any]:
        """The statement's values. Raises BadJob with every mistake."""
        body = None if self.payload is None else json.dumps(self.payload)
        mistakes = [
            *_text("operation_key", self.operation_key, LONGEST_KEY_BYTES),
            *_text("kind", self.kind, LONGEST_TENANT_BYTES),
            *_text("group_key", self.group_key, LONGEST_GROUP_BYTES),
            *_text("business_key", self.business_key, LONGEST_GROUP_BYTES),
            *_text("tenant", self.tenant, LONGEST_TENANT_BYTES),
        ]
        if not LEAST_PRIORITY <= self.priority <= MOST_PRIORITY:
            mistakes.append(f"priority is {self.priority}; it must be from {LEAST_PRIORITY} to {MOST_PRIORITY}")
        if self.max_attempts < 1:
            mistakes.append(f"max_attempts is {self.max_attempts}; at least one attempt is needed")
        if self.run_at is not None and self.run_at.tzinfo is None:
            mistakes.append("run_at has no time zone; a time of day is not a moment")
        if body is not None and len(body) > MOST_PAYLOAD_BYTES:
            mistakes.append(
                f"the payload has {len(body)} bytes; at most {MOST_PAYLOAD_BYTES} are taken: store it, and pass a reference"
            )
        if body is not None and "\\u0000" in body:
            mistakes.append("the payload holds a NUL character, which PostgreSQL cannot store")
        if mistakes:
            raise BadJob("\n".join(mistakes))
        return {
            "key": self.operation_key,
            "kind": self.kind,
            "priority": self.priority,
            "run_at": self.run_at,
            "group": self.group_key,
            "tenant": self.tenant,
            "business_key": self.business_key,
            "max_attempts": self.max_attempts,
            "body": body,
        }


@dataclass(frozen=True)
class Enqueued:
    """``added`` is false when there already was a job: ``job_id`` and ``operation_key`` then name that one."""

    job_id: int
    operation_key: str
    added: bool


def enqueue(connection: psycopg.Connection[Any], job: NewJob, statements: Statements | None = None) -> Enqueued:
    """Add a job in the caller's transaction. "Already there" is said only of a job that is committed, or is the caller's own."""
    texts = statements or Statements()
    values = job.values()
    for _ in range(DUPLICATE_TRIES):
        added = connection.execute(texts.text("enqueue"), values).fetchone()
        if added is not None:
            return Enqueued(_first(added), job.operation_key, added=True)
        found = connection.execute(texts.text("find_duplicate"), values).fetchone()
        if found is not None:
            job_id, key = (found["id"], found["operation_key"]) if isinstance(found, Mapping) else found[:2]
            return Enqueued(job_id, key, added=False)
        # The job in the way has ended between the two statements: try again.
    raise psycopg.errors.SerializationFailure(
        f"{job.operation_key[:80]!r} was neither added nor found in {DUPLICATE_TRIES} tries; repeat the transaction"
    )


class Enqueuer:
    """Adds jobs one by one, each in its own transaction, on a connection that it renews.

    After a lost reply the same key is simply sent again: the constraint makes that harmless. Workers are woken by a NOTIFY of
    its own, after the commit and at most twenty times a second: inside the enqueueing transaction it would make all commits
    queue up one behind the other.
    """

    def __init__(self, conninfo: str, *, wake: bool = True, pause: Callable[[float], None] = time.sleep) -> None:
        self._conninfo = conninfo
        self._wake = wake
        self._pause = pause
        self._connection: psycopg.Connection[Any] | None = None
        self._next_wake = 0.0
        self._statements = Statements()

    def enqueue(self, job: NewJob) -> Enqueued:
        """Returns when the job is durably there, whoever's try it was."""
        for tries in range(1, UNKNOWN_TRIES + 1):
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(
                        self._conninfo, autocommit=True, application_name="reference-queue enqueue"
                    )
                found = enqueue(self._connection, job, self._statements)
                self._hint()
            except psycopg.OperationalError:
                self.close()
                if tries == UNKNOWN_TRIES:
                    raise
                self._pause(random.uniform(0.5, 1.0) * min(0.05 * 2**tries, 5.0))
            else:
                return found
        raise AssertionError("the loop ends by returning or raising")

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _hint(self) -> None:
        now = time.monotonic()
        if self._wake and self._connection is not None and now >= self._next_wake:
            self._next_wake = now + SECONDS_BETWEEN_WAKES
            with suppress(psycopg.OperationalError):  # only a hint: the table stays the fact
                self._connection.execute(self._statements.text("wake"))


def _first(row: Any) -> int:
    return int(row["id"] if isinstance(row, Mapping) else row[0])


def _text(name: str, value: str | None, most: int) -> list[str]:
    if value is None:
        return []
    if "\x00" in value:
        return [f"{name} holds a NUL character, which PostgreSQL cannot store"]
    size = len(value.encode("utf-8", "replace"))
    return [] if 1 <= size <= most else [f"{name} has {size} bytes; it must have 1 to {most}"]
