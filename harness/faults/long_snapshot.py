"""A report that runs for hours: dead rows cannot be removed, and every claim reads past them."""

from collections.abc import AsyncIterator

from psycopg import sql

from harness.contracts.fault import Landed, fault
from harness.faults.held_session import held_session
from harness.faults.target import Target


@fault("long snapshot", strikes="table", holds_seconds=3.0, is_borne=True)
async def long_snapshot(target: Target) -> AsyncIterator[Landed]:
    """A transaction in repeatable read keeps an old snapshot, which holds vacuum back."""
    query = sql.SQL("select pg_current_snapshot()::text")
    async with (
        held_session(target, query, begin="begin isolation level repeatable read") as (pid, rows),
        target.connected("look") as witness,
    ):
        cursor = await witness.execute("select backend_xmin::text from pg_stat_activity where pid = %s", (pid,))
        row = await cursor.fetchone()
        yield Landed(
            f"backend {pid} holds snapshot {rows[0][0]}, nothing newer than {row[0] if row else '?'} is removed"
        )
