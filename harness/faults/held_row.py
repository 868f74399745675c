"""Somebody's long transaction holds one job's row; who waits behind it is recorded."""

from collections.abc import AsyncIterator

from psycopg import sql

from harness.contracts.fault import Landed, fault
from harness.faults.bystanders import watched
from harness.faults.held_session import held_session, next_key
from harness.faults.target import Target
from harness.history.recorder import DeadlinePassed


@fault("row held", strikes="table")
async def held_row(target: Target) -> AsyncIterator[Landed]:
    """A transaction of somebody else holds the row of one job: an operator's session, a report that locks."""
    key = target.key or await next_key(target)
    mapping, table = target.mapping, target.table
    query = sql.SQL(f"select ({mapping.id})::text from {table.name} where ({mapping.key}) = %s for update")
    async with held_session(target, query, (key,)) as (pid, rows):
        if not rows:
            raise DeadlinePassed(f"the fault 'row held' found no row of job {key!r}")
        async with watched(target, pid):
            yield Landed(f"backend {pid} of ours holds {rows[0][0]}", key=key)
