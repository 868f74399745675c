"""The server itself refuses a chosen statement, by a trigger of ours: what a client must be ready for at any time."""

from collections.abc import AsyncIterator

import psycopg
from psycopg import sql

from harness.contracts.fault import Fault, Inapplicable, Landed, fault
from harness.faults.target import Target, shown
from harness.history.recorder import DeadlinePassed
from harness.postgres.mapping import expressions
from harness.postgres.statements import statement

TIMES = 2
LOCK_TIMEOUT_MS = 3000
STRUCK_SECONDS = 8.0


def raised(sqlstate: str, change: str, means: str) -> Fault[Target]:
    """The fault that raises ``sqlstate`` in the first few statements of workers that make ``change``."""
    name = f"raised_{sqlstate.lower()}_at_{change}"

    async def raises(target: Target) -> AsyncIterator[Landed]:
        try:
            await _arm(target, name, sqlstate, change)
            async with target.connected("look") as connection:

                async def struck() -> bool:
                    row = await (await connection.execute(statement("look_at_raise", fault=name))).fetchone()
                    return bool(row and row[0])

                await shown(struck, within_seconds=STRUCK_SECONDS, reason=f"a worker's {change} to be refused")
            yield Landed(f"the server has raised {sqlstate} in a worker's {change}, and does so {TIMES} times")
        finally:
            await _disarm(target, name)

    raises.__name__ = name
    raises.__doc__ = f"A worker's {change} fails with {sqlstate} ({means}), {TIMES} times."
    return fault(f"{sqlstate} raised", strikes="table", holds_seconds=1.0, needs_results=True)(raises)


raised_serialization_failure = raised("40001", "claim", "a serialization failure")
raised_deadlock = raised("40P01", "complete", "a deadlock")
raised_admin_shutdown = raised("57P01", "claim", "the administrator ends the session")
raised_too_many_connections = raised("53300", "complete", "too many connections")
raised_unique_violation = raised("23505", "complete", "a unique violation")


async def _arm(target: Target, name: str, sqlstate: str, change: str) -> None:
    async with target.connected("trigger") as connection:
        parts = {
            "fault": name,
            "sqlstate": sqlstate,
            "change": change,
            "times": str(TIMES),
            "expressions": expressions(target.mapping),
            "alias": target.table.alias,
            "search_path": target.table.search_path,
            "table": target.table.name,
            "deleted": sql.Literal(target.mapping.deleted).as_string(connection),
        }
        try:
            async with connection.transaction():
                await connection.execute(f"set local lock_timeout = {LOCK_TIMEOUT_MS}")
                for each in ("create_raise_counter", "create_raise", "create_raise_trigger"):
                    await connection.execute(statement(each, **parts))
        except psycopg.errors.LockNotAvailable as error:
            raise DeadlinePassed(f"waited {LOCK_TIMEOUT_MS} ms to put a trigger on {target.table.name}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise Inapplicable(f"the role {target.owner.user} may not put a trigger on {target.table.name}") from error


async def _disarm(target: Target, name: str) -> None:
    async with target.connected("trigger") as connection, connection.transaction():
        for each in ("drop_raise", "drop_raise_counter"):
            await connection.execute(statement(each, fault=name))
