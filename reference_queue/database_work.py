"""Work that is nothing but database work: claim, do and complete in one transaction. It must make no call outside.

Either all of it happened or none: no lease can end in between, nothing needs to be asked, and a crash leaves the job pending.
The row stays locked meanwhile, so keep it short; external work goes through the worker.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from reference_queue.failures import classify
from reference_queue.grants import Grant
from reference_queue.statements import Statements

LEASE = timedelta(minutes=1)

Do = Callable[[psycopg.Connection[DictRow], Grant, Any], None]


def work_one(
    connection: psycopg.Connection[Any], worker: str, kinds: Sequence[str], do: Do, statements: Statements | None = None
) -> Grant | None:
    """Do one due job, or return None when none could be locked now. The connection must be in autocommit mode.

    When ``do`` raises, its work is rolled back, the failure is classified and recorded in a second transaction, and the
    exception is raised again. If even that cannot be recorded, the job is pending as before.
    """
    texts = statements or Statements()
    grant: Grant | None = None
    try:
        with connection.transaction():
            grant = _claim(connection, texts, worker, kinds)
            if grant is None:
                return None
            with connection.cursor(row_factory=dict_row) as cursor:
                row = cursor.execute(texts.text("read_payload"), {"id": grant.id}).fetchone()
                do(cursor.connection, grant, row["body"] if row else None)
                cursor.execute(
                    texts.text("complete"), {**_guard(grant, worker), "remote_id": None, "reason": "completed"}
                )
    except Exception as error:
        if grant is not None and not connection.closed:
            _record(connection, texts, worker, kinds, grant, error)
        raise
    return grant


def _claim(connection: psycopg.Connection[Any], texts: Statements, worker: str, kinds: Sequence[str]) -> Grant | None:
    values = {"kinds": list(kinds), "worker": worker, "lease": LEASE}
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(texts.text("claim", 1), values).fetchone()
    return Grant.from_row(row, deadline=0.0) if row else None


def _guard(grant: Grant, worker: str) -> dict[str, Any]:
    return {"id": grant.id, "version": grant.version, "worker": worker}


def _record(
    connection: psycopg.Connection[Any],
    texts: Statements,
    worker: str,
    kinds: Sequence[str],
    failed: Grant,
    error: Exception,
) -> None:
    """Claim again and fail in one transaction; only if it is still the same job that comes first."""
    failure = classify(error, {})
    with connection.transaction():
        grant = _claim(connection, texts, worker, kinds)
        if grant is None or grant.id != failed.id:
            raise psycopg.Rollback
        values = {
            **_guard(grant, worker),
            "outcome": failure.outcome,
            "absent": False,
            "error_class": failure.error_class,
            "error_code": failure.code,
            "error_reason": failure.reason,
            "response_id": None,
            "base": "1s",
            "cap": "10min",
            "jitter": 0.5,
        }
        connection.execute(texts.text("fail"), values)
