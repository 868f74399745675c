"""Somebody changes the table's shape: everything that touches it waits."""

from collections.abc import AsyncIterator

from psycopg import sql

from harness.contracts.fault import Landed, fault
from harness.faults.bystanders import watched
from harness.faults.held_session import held_session
from harness.faults.target import Target


@fault("table locked", strikes="table", holds_seconds=1.5)
async def locked_table(target: Target) -> AsyncIterator[Landed]:
    """The lock that ALTER TABLE takes, held for a while: a migration without a lock_timeout."""
    query = sql.SQL(f"lock table {target.table.name} in access exclusive mode")
    async with held_session(target, query) as (pid, _), watched(target, pid):
        yield Landed(f"backend {pid} of ours holds the whole table")
