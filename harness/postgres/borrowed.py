"""The one database of a user without CREATEDB: lent to one at a time, and given back as empty as it was."""

import asyncio
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.postgres.address import Address
from harness.postgres.databases import DROP_SECONDS, connect, first_line
from harness.postgres.statements import statement

MARKER = "queueproof_was_here"
MARKER_COMMENT = (
    "queueproof empties this database: all that is in it is made by queueproof. Drop this schema to stop that."
)
SCHEMA_COMMENT = "made by queueproof for one run, and dropped at its end"
RUN_LOCK = 7700001
LOCK_TIMEOUT = "5s"
SHOWN_OBJECTS = 10


@dataclass(frozen=True)
class Thing:
    """Something in the database: its type and name, as DROP wants them, and its owner."""

    type: str
    identity: str
    owner: str


@dataclass(frozen=True)
class Leftover:
    """A schema with our name: what its comment says, and the triggers that run its functions."""

    told: str | None
    triggers: list[str]


class BorrowedDatabase:
    """``ours``: it was empty, or holds our marker, so all of it may go. Else only what is new and owned by us goes."""

    def __init__(
        self,
        address: Address,
        connection: psycopg.AsyncConnection[tuple[object, ...]],
        before: frozenset[Thing],
        *,
        ours: bool,
    ) -> None:
        self._address = address
        self._connection = connection  # holds the run's lock
        self._before = before
        self._ours = ours
        self._free = asyncio.Lock()
        self._lent_to: str | None = None

    @classmethod
    async def open(cls, address: Address, *, allow_existing: bool) -> "BorrowedDatabase":
        """Take it for this run. BadInput when it holds somebody's things and ``allow_existing`` was not said."""
        connection = await connect(address)
        try:
            await take_for_this_run(connection, address)
            await drop_leftovers(connection, address)
            before = await _things(connection)
            marked = any(thing.type == "schema" and thing.identity == MARKER for thing in before)
            if before and not marked and not allow_existing:
                raise BadInput(_not_empty(address, before))
            ours = marked or not before
            borrowed = cls(address, connection, frozenset() if ours else frozenset(before), ours=ours)
            if marked:  # left by a run that was killed
                await borrowed._empty()
            if ours:
                await _mark(connection, address)
                borrowed._before = frozenset(await _things(connection))
            return borrowed
        except BaseException:
            await connection.close()
            raise

    async def lend(self, name: str) -> Address:
        """Wait until nobody has it."""
        await self._free.acquire()
        self._lent_to = name
        return self._address

    async def give_back(self, name: str) -> None:
        """Empty it and let the next one have it. Nothing happens when ``name`` does not have it."""
        if name not in {self._lent_to, self._address.dbname} or self._lent_to is None:
            return
        await self._empty()
        self._lent_to = None
        self._free.release()

    async def close(self) -> None:
        """Leave it as it was found."""
        self._before = frozenset(thing for thing in self._before if thing.identity != MARKER)
        await self._empty()

    async def disconnect(self) -> None:
        """Let go of the run's lock."""
        await self._connection.close()

    async def _empty(self) -> None:
        """Drop what is ours. Bounded by a lock timeout; EnvironmentFailed says what would not go."""
        connection = self._connection
        stuck = ""
        try:
            async with asyncio.timeout(DROP_SECONDS):
                if self._ours:
                    await connection.execute(statement("end_other_sessions"))
                await connection.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
                for thing in await _things(connection):
                    if thing not in self._before and thing.owner == self._address.user:
                        stuck = f"{thing.type} {thing.identity}"
                        await connection.execute(_drop(thing))
        except (psycopg.Error, TimeoutError) as error:
            why = first_line(error) if isinstance(error, psycopg.Error) else f"not done within {DROP_SECONDS:g} s"
            raise EnvironmentFailed(f"{stuck or 'what we made'} stays at {self._address.shown()}: {why}") from error


async def _things(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> tuple[Thing, ...]:
    async with connection.cursor(row_factory=class_row(Thing)) as cursor:
        await cursor.execute(statement("list_objects"))
        return tuple(await cursor.fetchall())


async def drop_leftovers(connection: psycopg.AsyncConnection[tuple[object, ...]], address: Address) -> list[str]:
    """Drop the schema of a run that was killed, and the triggers that run its functions. Returns what went.

    To be called with the run's lock: nobody living has them. A schema of that name without our comment is somebody's own.
    """
    cursor = connection.cursor(row_factory=class_row(Leftover))
    await cursor.execute(statement("look_at_schema"))
    found = await cursor.fetchone()
    if found is None or found.told != SCHEMA_COMMENT:
        return []
    try:
        await connection.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
        await connection.execute(statement("drop_schema"))
    except psycopg.Error as error:
        raise EnvironmentFailed(
            f"schema queueproof, which a killed run has left at {address.shown()}, could not be dropped:"
            f" {first_line(error)}; end the sessions that hold it, and run this again"
        ) from error
    return [*found.triggers, "schema queueproof"]


async def take_for_this_run(connection: psycopg.AsyncConnection[tuple[object, ...]], address: Address) -> None:
    cursor = await connection.execute("select pg_try_advisory_lock(%s)", [RUN_LOCK])
    if await cursor.fetchone() != (True,):
        raise EnvironmentFailed(
            f"another run of queueproof is using {address.shown()}; wait for it, or grant CREATEDB to {address.user} "
            "so that each run makes databases of its own"
        )


async def _mark(connection: psycopg.AsyncConnection[tuple[object, ...]], address: Address) -> None:
    try:
        await connection.execute(sql.SQL("create schema {}").format(sql.Identifier(MARKER)))
        await connection.execute(
            sql.SQL("comment on schema {} is {}").format(sql.Identifier(MARKER), sql.Literal(MARKER_COMMENT))
        )
    except psycopg.errors.InsufficientPrivilege as error:
        raise EnvironmentFailed(
            f"user {address.user} may create neither databases nor schemas at {address.shown()}; "
            f"grant create on database {address.dbname} to {address.user}, or alter role {address.user} createdb"
        ) from error


def _drop(thing: Thing) -> sql.Composed:
    """Both parts come from pg_identify_object, quoted by the server as DROP wants them."""
    kind = "type" if thing.type == "composite type" else thing.type
    return sql.SQL("drop {} if exists {} cascade").format(sql.SQL(kind), sql.SQL(thing.identity))


def _not_empty(address: Address, things: tuple[Thing, ...]) -> str:
    shown = ", ".join(f"{thing.type} {thing.identity}" for thing in things[:SHOWN_OBJECTS])
    more = f" and {len(things) - SHOWN_OBJECTS} more" if len(things) > SHOWN_OBJECTS else ""
    return (
        f"{address.shown()} is not empty: it holds {shown}{more}. User {address.user} may not create databases, so the "
        "drills would run in there: name an empty database, grant CREATEDB, or add --allow-existing"
    )
