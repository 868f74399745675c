"""The job rows' own transitions, recorded in the database by triggers of ours, and read back without a gap.

Reading truth is itself a consumer of uncommitted sequence numbers, so unseen rows are found by anti-join and never by
"greater than the last".
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.contracts.subject import JobsMapping, State
from harness.history.events import Moved, Row
from harness.postgres.gates import MOST_PLACES, PLACES_APART
from harness.postgres.mapping import JobTable, expressions
from harness.postgres.statements import statement

SNAPSHOT_GATE, CLAIM_GATE, RENEW_GATE, RESULT_GATE = 7700101, 7700102, 7700103, 7700104
"""Classes of the advisory locks that are our gates. The object is the worker's number, and at the snapshot the place as well."""

_ROW_TRIGGERS = ("queueproof_truth", "queueproof_commit")


async def install_truth(connection: psycopg.AsyncConnection, mapping: JobsMapping, table: JobTable) -> None:
    """Put our schema, functions and triggers beside the subject's table. One transaction: all or nothing.

    Raises EnvironmentFailed when the role may not create a schema, or a trigger on that table.
    """
    parts = {
        "expressions": expressions(mapping),
        "alias": table.alias,
        "search_path": table.search_path,
        "deleted": psycopg.sql.Literal(mapping.deleted).as_string(connection),
        "snapshot_class": str(SNAPSHOT_GATE),
        "places_apart": str(PLACES_APART),
        "most_places": str(MOST_PLACES),
        "claim_class": str(CLAIM_GATE),
        "renew_class": str(RENEW_GATE),
        "result_class": str(RESULT_GATE),
    }
    names = (
        "create_schema",
        "comment_schema",
        "create_enqueued",
        "create_truth",
        "create_truth_index",
        "create_mapped",
        "create_change",
        "create_truth_trigger_function",
        "create_snapshot_gate_function",
        "create_commit_gate_function",
    )
    try:
        async with connection.transaction():
            for name in names:
                await connection.execute(statement(name, **parts))
            await connection.execute(statement("create_truth_trigger", table=table.name))
            await connection.execute(statement("create_commit_gate", table=table.name))
            for partition in table.partitions:
                await connection.execute(statement("create_snapshot_gate", table=partition))
                await connection.execute(statement("enable_always", table=partition, trigger="queueproof_snapshot"))
                for trigger in _ROW_TRIGGERS:
                    await connection.execute(statement("enable_always", table=partition, trigger=trigger))
    except psycopg.errors.DuplicateSchema as error:
        raise EnvironmentFailed(
            "there is a schema named queueproof in the database already, and that is where our own objects would stand;"
            " when a run that was killed has left it, queueproof doctor --clean DSN removes it"
        ) from error
    except psycopg.errors.WrongObjectType as error:
        raise BadInput(
            f"subject.jobs.table: {table.name!r} is no table that triggers can watch ({error.diag.message_primary});"
            " name the table that the rows stand in"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise EnvironmentFailed(
            f"cannot watch the table {table.name}: {error.diag.message_primary}; connect as the table's owner or a superuser"
        ) from error


async def remove_truth(
    connection: psycopg.AsyncConnection, table: JobTable, *, lock_timeout_ms: int = 2000
) -> str | None:
    """Take our objects away. Returns None when all is gone, else a sentence saying what would not go."""
    try:
        async with connection.transaction():
            await connection.execute(f"set local lock_timeout = {lock_timeout_ms}")
            for trigger in ("queueproof_truth", "queueproof_commit"):
                await connection.execute(statement("drop_triggers", trigger=trigger, table=table.name))
            for partition in table.partitions:
                await connection.execute(statement("drop_triggers", trigger="queueproof_snapshot", table=partition))
            await connection.execute(statement("drop_schema"))
    except psycopg.Error as error:
        return (
            f"schema queueproof and our triggers on {table.name} are still there ({str(error).strip()});"
            " run: queueproof doctor --clean"
        )
    return None


def microseconds(at: datetime | None) -> int | None:
    """A database timestamp as whole microseconds since the Unix epoch."""
    if at is None:
        return None
    whole = at.timestamp()
    return int(whole) * 1_000_000 + at.microsecond if whole >= 0 else round(whole * 1_000_000)


@dataclass
class TruthReader:
    """Reads each committed transition once. ``error`` is set when the mapping failed on a row: truth is then incomplete."""

    connection: psycopg.AsyncConnection
    error: str | None = None
    _low: int = 0
    _seen: set[int] = field(default_factory=set)

    async def unseen(self) -> list[Moved]:
        """The transitions that became visible since the last call, in order of their number."""
        cursor = self.connection.cursor(row_factory=dict_row)
        await cursor.execute(statement("read_truth"), {"low": self._low, "seen": list(self._seen)})
        moved: list[Moved] = []
        for row in await cursor.fetchall():
            self._seen.update(row["seqs"])
            if row["error"] is not None and self.error is None:
                self.error = f"the mapping failed on job {row['job']}: {row['error']}"
            moved.append(_moved(row))
            state = row["new_state"]
            if row["ours"] and row["error"] is None and state not in set(State) and self.error is None:
                self.error = f"the mapping of subject.jobs.state yields {state!r} for job {row['job']}; map it to one of {', '.join(State)}"
        while self._low + 1 in self._seen:
            self._low += 1
            self._seen.remove(self._low)
        return moved


def _moved(row: dict[str, Any]) -> Moved:
    old = None if row["old_state"] is None else _row(row, "old")
    new = _row(row, "new")
    return Moved(
        seq=row["seq"],
        xid=row["xid"],
        pid=row["pid"],
        worker=row["worker"],
        change=row["change"],
        job=row["job"] or "",
        key=row["key"],
        old=old,
        new=new,
        transaction_us=microseconds(row["transaction_at"]) or 0,
        statement_us=microseconds(row["statement_at"]) or 0,
        wall_us=microseconds(row["wall_at"]) or 0,
        app=row["app"],
        ours=row["ours"],
        deleted=row["deleted"],
    )


def _row(row: dict[str, Any], side: str) -> Row:
    return Row(
        state=row[f"{side}_state"] or "",
        owner=row[f"{side}_owner"],
        token=row[f"{side}_token"],
        lease_us=microseconds(row[f"{side}_lease"]),
        attempts=row[f"{side}_attempts"],
        run_at_us=microseconds(row[f"{side}_run_at"]),
    )
