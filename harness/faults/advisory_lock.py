"""An advisory lock that nobody gives back."""

from collections.abc import AsyncIterator

from psycopg import sql

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.held_session import held_session, next_key
from harness.faults.target import Target


@fault("advisory lock leaked", strikes="table")
async def advisory_lock(target: Target) -> AsyncIterator[Landed]:
    """Somebody's session holds the advisory lock on a job's number, as a pooled connection that was given back does.

    It stops a queue that locks job numbers, and is no more than a line in pg_locks to one that locks rows.
    """
    key = target.key or await next_key(target)
    mapping = target.mapping
    query = sql.SQL(
        f"with job as (select ({mapping.id})::text as id from {target.table.name} where ({mapping.key}) = %s)"
        " select id, pg_try_advisory_xact_lock(id::bigint) from job where id ~ '^[0-9]{1,18}$'"
    )
    async with held_session(target, query, (key,)) as (pid, rows):
        if not rows:
            raise Inapplicable("its jobs have no numbers that an advisory lock could be on")
        if not rows[0][1]:
            raise Inapplicable(f"somebody holds the advisory lock {rows[0][0]} already: this queue uses them itself")
        yield Landed(f"backend {pid} of ours holds the advisory lock {rows[0][0]}", key=key)
