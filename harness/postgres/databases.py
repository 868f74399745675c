"""Names, makes and drops databases. Every name starts with ``queueproof_`` and carries the run's own token."""

import asyncio
import hashlib
import re
import secrets

import psycopg
from psycopg import sql

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address

PREFIX = "queueproof_"
LONGEST_NAME = 63
CREATE_SECONDS = 30.0
DROP_SECONDS = 15.0
CONNECT_SECONDS = 5


async def connect(
    address: Address, application_name: str = "queueproof"
) -> psycopg.AsyncConnection[tuple[object, ...]]:
    """An autocommit session of the harness's own; text arrives as text whatever the server's encoding."""
    return await psycopg.AsyncConnection.connect(
        address.dsn(),
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        client_encoding="UTF8",
        application_name=application_name,
    )


class Databases:
    """The databases of one run on one server."""

    def __init__(self, address: Address, *, utf8_by_default: bool = True) -> None:
        self._address = address
        self.token = secrets.token_hex(4)
        self._prefix = f"{PREFIX}{self.token}_"
        self._utf8_by_default = utf8_by_default
        self.made: set[str] = set()

    def real_name(self, name: str) -> str:
        """The name on the server: ours, lower case, short enough, and never another run's."""
        if name.startswith(self._prefix):
            return name
        slug = re.sub(r"[^a-z0-9_]", "_", name.lower())
        room = LONGEST_NAME - len(self._prefix)
        if slug != name or len(slug) > room:
            slug = f"{slug[: room - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self._prefix + slug

    async def create(self, name: str, template: str | None) -> Address:
        """Create a database, empty or a copy of ``template``."""
        real = self.real_name(name)
        statement = sql.SQL("create database {}").format(sql.Identifier(real))
        if template is not None:
            statement += sql.SQL(" template {}").format(sql.Identifier(self.real_name(template)))
        elif not self._utf8_by_default:
            statement += sql.SQL(" template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'")
        self.made.add(real)
        await self._execute(statement, CREATE_SECONDS, f"create the database {real}")
        return self._address.at(real)

    async def drop(self, name: str) -> None:
        """Drop a database of this run, ending whoever is in it; nothing happens when it does not exist."""
        await self.drop_abandoned(self.real_name(name))

    async def drop_abandoned(self, real: str) -> None:
        """The same for a database of any run."""
        statement = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(real))
        await self._execute(statement, DROP_SECONDS, f"drop the database {real}")
        self.made.discard(real)

    async def drop_all(self) -> None:
        """Drop what is left of this run."""
        for name in sorted(self.made):
            await self.drop(name)

    async def _execute(self, statement: sql.Composed, within_seconds: float, deed: str) -> None:
        try:
            async with asyncio.timeout(within_seconds), await connect(self._address) as connection:
                await connection.execute(statement)
        except TimeoutError as error:
            raise EnvironmentFailed(
                f"could not {deed} at {self._address.shown()} within {within_seconds:g} s"
            ) from error
        except psycopg.Error as error:
            raise EnvironmentFailed(f"could not {deed} at {self._address.shown()}: {first_line(error)}") from error


def first_line(error: psycopg.Error) -> str:
    """The server's own sentence, without its context."""
    return (error.diag.message_primary or str(error).strip().splitlines()[0]).strip()
