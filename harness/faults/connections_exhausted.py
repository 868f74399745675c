"""The server has no connection left to give."""

from collections.abc import AsyncIterator

import psycopg
from psycopg import sql

from harness.contracts.fault import Inapplicable, Landed, fault
from harness.faults.backend_terminated import terminated
from harness.faults.target import Target
from harness.postgres.databases import PREFIX

TOO_MANY = "53300"


@fault("connections exhausted", strikes="connection")
async def connections_exhausted(target: Target) -> AsyncIterator[Landed]:
    """New connections of workers are refused with "too many connections" (53300), and those they had are ended."""
    if not target.owner.dbname.startswith(PREFIX):
        # Were we killed meanwhile, a database of somebody's own would stay shut.
        raise Inapplicable(f"the database {target.owner.dbname} is not ours to shut")
    database = sql.Identifier(target.owner.dbname)
    async with target.connected("limiter") as connection:
        try:
            await connection.execute(sql.SQL("alter database {} connection limit 0").format(database))
        except psycopg.errors.InsufficientPrivilege as error:
            raise Inapplicable(f"the role {target.owner.user} may not limit the connections of its database") from error
        try:
            told = await _refusal(target)
            pids = [session.pid for worker in target.everyone for session in worker.sessions if session.pid]
            if pids:
                await terminated(target, pids, connection)
            yield Landed(f"a new connection of role {target.worker.user} is refused: {told}")
        finally:
            await _lift(target, connection, sql.SQL("alter database {} connection limit -1").format(database))


async def _refusal(target: Target) -> str:
    try:
        connection = await psycopg.AsyncConnection.connect(
            target.worker.dsn(), application_name="queueproof look", connect_timeout=5
        )
    except psycopg.OperationalError as error:
        told = str(error).strip().splitlines()[-1].strip()
        if "too many connections" not in told:
            raise
        return f"{told} ({TOO_MANY})"
    await connection.close()
    raise Inapplicable(f"the role {target.worker.user} is above limits of connections")


async def _lift(target: Target, connection: psycopg.AsyncConnection, statement: sql.Composed) -> None:
    """On the connection that set the limit, or a new one: a superuser's is let in all the same."""
    try:
        await connection.execute(statement)
    except psycopg.OperationalError:
        async with target.connected("limiter") as another:
            await another.execute(statement)
