"""A session that began, wrote, and went to lunch."""

from collections.abc import AsyncIterator

from psycopg import sql

from harness.contracts.fault import Landed, fault
from harness.faults.held_session import held_session
from harness.faults.target import Target


@fault("idle in transaction", strikes="table", holds_seconds=3.0, is_borne=True)
async def idle_transaction(target: Target) -> AsyncIterator[Landed]:
    """Somebody's transaction stays open and does nothing: it holds its locks, and vacuum back."""
    query = sql.SQL("select pg_current_xact_id()::text")
    async with held_session(target, query) as (pid, rows), target.connected("look") as witness:
        cursor = await witness.execute("select state from pg_stat_activity where pid = %s", (pid,))
        row = await cursor.fetchone()
        yield Landed(f"backend {pid} is {row[0] if row else 'gone'}, transaction {rows[0][0]} in progress")
