"""Archives finished jobs with their audit, then deletes them, in small steps by primary key beside live claims."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reference_queue.statements import Statements

ALL_DAY = (dt.time(0, 0), dt.time(23, 59, 59, 999999))


@dataclass(frozen=True)
class Step:
    """One batch. ``last`` is where a later run may go on; ``None`` when the end was reached."""

    last: int | None
    deleted: int


def retain(
    connection: psycopg.Connection[Any],
    keep: dt.timedelta,
    *,
    batch: int = 1000,
    after: int = 0,
    pause_seconds: float = 0.05,
    hours: tuple[dt.time, dt.time] = ALL_DAY,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Step]:
    """One batch per step, each its own transaction, until the end of the table or of the allowed hours (the server's clock).

    A batch that is interrupted was rolled back as a whole; running again from the start is always right, only slower.
    Operation keys are refused as duplicates only as long as their job is kept: ``keep`` is that promise, too.
    """
    if keep < dt.timedelta(0):
        raise ValueError("keep must not be negative")
    if not 1 <= batch <= 10_000:
        raise ValueError("a batch must have 1 to 10000 rows")
    text = Statements().text("retain", batch)
    while _allowed(connection, hours):
        with connection.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(text, {"after": after, "keep": keep}).fetchone()
        assert row is not None
        yield Step(row["last"], row["deleted"])
        if row["last"] is None:
            return
        after = row["last"]
        pause(pause_seconds)


def _allowed(connection: psycopg.Connection[Any], hours: tuple[dt.time, dt.time]) -> bool:
    row = connection.execute(Statements().text("local_time")).fetchone()
    assert row is not None
    now: dt.time = row["now"] if isinstance(row, dict) else row[0]
    begin, end = hours
    return begin <= now <= end if begin <= end else now >= begin or now <= end
