"""A guest on somebody's server: it makes databases of its own when it may, and hurts nothing."""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.postgres.address import Address
from harness.postgres.borrowed import BorrowedDatabase
from harness.postgres.cluster import Cluster
from harness.postgres.databases import PREFIX, Databases, connect, first_line
from harness.postgres.options import ServerOption, without_password
from harness.postgres.statements import statement

OLDEST = 140000
REACH_SECONDS = 5
WRONG_ADDRESS = re.compile(
    r"authentication failed|no password supplied|does not exist|pg_hba\.conf|not permitted to log in"
)
OURS_TO_SAY = {"host", "port", "user", "dbname", "password", "connect_timeout", "application_name", "client_encoding"}


@dataclass(frozen=True)
class Rights:
    """What the server says of itself and of us."""

    version: str
    encoding: str
    template_is_utf8: bool
    superuser: bool
    may_create_databases: bool
    may_create_roles: bool


class GuestCluster(Cluster):
    """With CREATEDB: databases of our own. Without: the one database of the DSN, one user of it at a time."""

    may_be_hurt = False

    def __init__(self, address: Address, rights: Rights, borrowed: BorrowedDatabase | None) -> None:
        self.address = address
        self.version = rights.version
        self.source = f"server at {address.host}:{address.port}"
        self.can_create_databases = borrowed is None
        self.worker_role = address.user
        self.worker_password = address.password
        self._borrowed = borrowed
        self.databases = Databases(address, utf8_by_default=rights.template_is_utf8)

    async def create_database(self, name: str, template: str | None = None) -> Address:
        """Without CREATEDB it waits until the one database is free; a template is then impossible."""
        if self._borrowed is not None:
            if template is not None:
                raise ValueError(f"no template {template!r} on a server where databases cannot be created")
            return await self._borrowed.lend(name)
        made = await self.databases.create(name, template)
        if self.worker_role != self.address.user:
            async with await connect(self.address) as connection:
                await connection.execute(
                    sql.SQL("grant connect on database {} to {}").format(
                        sql.Identifier(made.dbname), sql.Identifier(self.worker_role)
                    )
                )
        return made

    async def drop_database(self, name: str) -> None:
        if self._borrowed is not None:
            await self._borrowed.give_back(name)
        else:
            await self.databases.drop(name)

    async def close(self) -> None:
        """Leave nothing of ours, unless it is to be kept."""
        if self.kept:
            return
        if self._borrowed is not None:
            await self._borrowed.close()
        await self.databases.drop_all()


@contextlib.asynccontextmanager
async def open_guest(option: ServerOption, *, allow_existing: bool) -> AsyncIterator[GuestCluster]:
    """Check the way in, the version, the encoding and our rights; say in one sentence what is missing."""
    address, rights = await _reached(option)
    borrowed = None
    if not rights.may_create_databases:
        if rights.encoding != "UTF8":
            raise EnvironmentFailed(
                f"{address.shown()} is encoded in {rights.encoding}, and user {address.user} may not create another "
                "database; name one with encoding UTF8, or grant CREATEDB"
            )
        borrowed = await BorrowedDatabase.open(address, allow_existing=allow_existing)
    cluster = GuestCluster(address, rights, borrowed)
    role = None
    # This session's name tells other runs that we live, so that they leave alone what is ours.
    presence = await connect(address, f"queueproof {cluster.databases.token}")
    try:
        await _sweep(cluster, presence)
        if rights.may_create_roles:
            role = await _worker_role(cluster, superuser=rights.superuser)
        yield cluster
    finally:
        try:
            await cluster.close()
        finally:
            if borrowed is not None:
                await borrowed.disconnect()
            await presence.close()
            if role is not None and not cluster.kept:
                await _drop_role(address, role)


async def sweep(option: ServerOption) -> list[str]:
    """Remove, by name, the databases and roles that killed runs have left on this server. Returns what was removed."""
    address, _ = await _reached(option)
    databases, removed = Databases(address), []
    async with await connect(address, "queueproof doctor") as connection:
        cursor = await connection.execute(statement("list_abandoned"))
        for kind, name in await cursor.fetchall():
            if kind == "database":
                await databases.drop_abandoned(str(name))
            else:
                await _drop_role(address, str(name))
            removed.append(f"{kind} {name}")
    return removed


async def _sweep(cluster: GuestCluster, presence: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Remove what runs that were killed have left on this server."""
    cursor = await presence.execute(statement("list_abandoned"))
    for kind, name in await cursor.fetchall():
        if kind == "database":
            await cluster.databases.drop_abandoned(str(name))
        else:
            await _drop_role(cluster.address, str(name))


async def _reached(option: ServerOption) -> tuple[Address, Rights]:
    """The address with libpq's defaults filled in, and what we may do there."""
    given = {name: str(value) for name, value in conninfo_to_dict(option.dsn or "").items() if value is not None}
    if not given.get("host") and not given.get("hostaddr"):
        inherited = os.environ.get("PGHOST", "")
        given["host"] = "localhost" if inherited.startswith("/") or not inherited else inherited  # a proxy needs TCP
    reached = given | {"connect_timeout": str(REACH_SECONDS), "client_encoding": "UTF8"}
    try:
        async with (
            asyncio.timeout(REACH_SECONDS + 1),
            await psycopg.AsyncConnection.connect(make_conninfo(**reached), autocommit=True) as connection,
        ):
            info = connection.info
            address = Address(
                host=info.host,
                port=info.port,
                user=info.user,
                dbname=info.dbname,
                password=info.password or None,
                params={name: value for name, value in given.items() if name not in OURS_TO_SAY},
            )
            if info.server_version < OLDEST:
                raise EnvironmentFailed(
                    f"{address.shown()} is PostgreSQL {info.parameter_status('server_version')}; "
                    f"{OLDEST // 10000} or newer is needed"
                )
            return address, await _rights(connection)
    except TimeoutError as error:
        raise _unreachable(option, given, "no answer", error) from error
    except psycopg.OperationalError as error:
        raise _unreachable(option, given, _reason(error, given.get("password")), error) from error


async def _rights(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> Rights:
    cursor = await connection.execute(statement("look_at_rights"))
    row = await cursor.fetchone()
    if row is None:
        raise EnvironmentFailed("the server does not know the user that it has just let in")
    superuser, databases, roles, template = row
    said = connection.info.parameter_status
    return Rights(
        version=(said("server_version") or "unknown").split()[0],
        encoding=said("server_encoding") or "unknown",
        template_is_utf8=template == "UTF8",
        superuser=bool(superuser),
        may_create_databases=bool(superuser or databases),
        may_create_roles=bool(superuser or roles),
    )


def _unreachable(option: ServerOption, given: dict[str, str], reason: str, error: Exception) -> Exception:
    where = f"{given.get('host') or given.get('hostaddr')}:{given.get('port') or os.environ.get('PGPORT') or 5432}"
    who = f"user {given['user']!r}" if "user" in given else "the default user"
    sentence = f"cannot connect to {where} as {who}: {reason}"
    if isinstance(error, psycopg.OperationalError) and WRONG_ADDRESS.search(reason):
        return BadInput(f"--server {without_password(option.dsn or '')}: {sentence}; correct the address")
    return EnvironmentFailed(f"{sentence}; is the server up, and the address right? --server embedded needs neither")


def _reason(error: psycopg.Error, password: str | None) -> str:
    """The most telling piece of libpq's tale, certain not to hold the password."""
    lines = str(error).strip().splitlines()
    telling = [line for line in lines if re.search(r"failed: |FATAL", line)] or lines
    reason = re.split(r"(?:failed|FATAL|ERROR): +", telling[-1])[-1].strip()
    return reason.replace(password, "***") if password else reason


async def _worker_role(cluster: GuestCluster, *, superuser: bool) -> str | None:
    """Make a role that owns nothing and show that it can log in; None when the server's rules do not let it."""
    role, password = f"{PREFIX}worker_{cluster.databases.token}", secrets.token_urlsafe(16)
    name = sql.Identifier(role)
    async with await connect(cluster.address) as connection:
        secret = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        try:
            await connection.execute(sql.SQL("create role {} login password {}").format(name, sql.Literal(secret)))
        except psycopg.Error:
            return None  # CREATEROLE in name only, as some hosted servers have it
        if not superuser:  # so that we may end its sessions
            await connection.execute(sql.SQL("grant {} to current_user").format(name))
    try:
        async with await connect(cluster.address.as_user(role, password)):
            pass
    except psycopg.OperationalError:
        await _drop_role(cluster.address, role)
        return None
    cluster.worker_role, cluster.worker_password = role, password
    return role


async def _drop_role(address: Address, role: str) -> None:
    name = sql.Identifier(role)
    try:
        async with await connect(address) as connection:
            await connection.execute(sql.SQL("drop owned by {}").format(name))
            await connection.execute(sql.SQL("drop role if exists {}").format(name))
    except psycopg.Error as error:
        raise EnvironmentFailed(
            f"the role {role} stays at {address.shown()}: {first_line(error)}; drop it with: drop role {role}"
        ) from error
