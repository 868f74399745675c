"""A guest on somebody's server: says clearly why it cannot come in, hurts nothing, and leaves nothing of its own."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from harness.contracts.problem import BadInput, EnvironmentFailed, Problem
from harness.postgres import guest
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.databases import connect
from harness.postgres.options import parse_server
from harness.postgres.owned import OwnedCluster
from harness.processes.watchdog import Watchdog

Play = Callable[[Cluster], Awaitable[None]]
LEAVINGS = """
    select 'database', datname from pg_database where datname ~ '^queueproof_'
    union all
    select 'role', rolname from pg_roles where rolname ~ '^queueproof_worker_'
"""


@pytest.fixture(scope="module")
def host(watchdog: Watchdog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedCluster]:
    """Somebody's server: users of every rank, passwords for those named s_*, databases of every kind."""
    with asyncio.Runner() as runner:
        opened = open_cluster(parse_server("embedded"), watchdog, tmp_path_factory.mktemp("host"))
        cluster = runner.run(opened.__aenter__())
        assert isinstance(cluster, OwnedCluster)
        runner.run(furnish(cluster))
        yield cluster
        runner.run(opened.__aexit__(None, None, None))


async def furnish(cluster: OwnedCluster) -> None:
    rules = (cluster.server.data / "pg_hba.conf").read_text()
    (cluster.server.data / "pg_hba.conf").write_text(
        "host all secretive 127.0.0.1/32 scram-sha-256\nhost all lonely 127.0.0.1/32 trust\n"
        f"host lonelydb all 127.0.0.1/32 reject\n{rules}"
    )
    async with await connect(cluster.address) as connection:
        for statement in (
            "create role chief superuser login",
            "create role maker createdb createrole login",
            "create role modest createdb login",
            "create role poor login",
            "create role poorer login",
            "create role secretive createdb login password 's3cret'",
            "create role lonely createrole login",
            "create database own owner poor",
            "create database lonelydb owner lonely",
            "create database full_one owner poor",
            "create database ascii template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' owner poor",
        ):
            await connection.execute(statement)
    async with await connect(cluster.address.at("full_one").as_user("poor")) as connection:
        await connection.execute("create schema theirs create table theirs.orders (id serial primary key)")
        await connection.execute("create function public.price(int) returns int language sql as 'select $1'")
    await cluster.reload({})


@pytest.fixture
def visit(host: OwnedCluster, watchdog: Watchdog, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Be the guest of a user at a database; afterwards nothing of ours may be left on the server."""

    def run(user: str, dbname: str, play: Play, *, allow_existing: bool = False, password: str | None = None) -> None:
        address = host.address.at(dbname).as_user(user, password)

        async def opened() -> None:
            option = parse_server(address.url())
            async with open_cluster(option, watchdog, tmp_path, allow_existing=allow_existing) as cluster:
                await play(cluster)

        asyncio.run(opened())

    yield run
    assert rows(host.address, LEAVINGS) == []


def rows(address: Address, question: str) -> list[tuple[object, ...]]:
    with psycopg.connect(address.dsn()) as connection:
        return connection.execute(sql.SQL(question)).fetchall()


async def nothing(_: Cluster) -> None:
    pass


async def never(_: Cluster) -> None:
    pytest.fail("it was let in")


@pytest.mark.parametrize("user", ["chief", "maker"])
def test_with_rights_it_makes_databases_and_a_worker_role_of_its_own(visit: Callable[..., None], user: str) -> None:
    async def play(cluster: Cluster) -> None:
        assert (cluster.can_create_databases, cluster.may_be_hurt) == (True, False)
        assert cluster.worker_role.startswith("queueproof_worker_")
        assert cluster.version.startswith("18.")
        database = await cluster.create_database("x")
        async with await connect(cluster.as_worker(database)) as worker, await connect(database) as owner:
            row = await (await worker.execute("select current_user::text, current_database()::text")).fetchone()
            assert row == (cluster.worker_role, database.dbname)
            # Ending the worker's sessions, and dropping the database under them, needs a right of its own.
            await owner.execute("select pg_terminate_backend(%s)", [worker.info.backend_pid])
            with pytest.raises(psycopg.OperationalError):
                await worker.execute("select 1")
        async with await connect(cluster.as_worker(database)):
            await cluster.drop_database("x")
        await cluster.create_database("left for the end")

    visit(user, "postgres", play)


def test_without_createrole_the_worker_is_the_user(visit: Callable[..., None]) -> None:
    async def play(cluster: Cluster) -> None:
        assert cluster.worker_role == "modest"
        database = await cluster.create_database("x")
        async with await connect(cluster.as_worker(database)):
            pass

    visit("modest", "postgres", play)


def test_a_password_reaches_owner_and_worker_and_no_print(visit: Callable[..., None]) -> None:
    async def play(cluster: Cluster) -> None:
        assert "s3cret" not in f"{cluster.address!r} {cluster.source} {cluster.keep()}"
        cluster.kept = False
        async with await connect(cluster.as_worker(await cluster.create_database("x"))):
            pass

    visit("secretive", "postgres", play, password="s3cret")


def test_it_hurts_nothing(visit: Callable[..., None]) -> None:
    async def play(cluster: Cluster) -> None:
        for deed in (cluster.stop(), cluster.start(), cluster.restart(), cluster.reload({"fsync": "off"})):
            with pytest.raises(BadInput, match="somebody's server"):
                await deed
        with pytest.raises(BadInput, match="somebody's server"):
            cluster.backend_kill9(1)

    visit("chief", "postgres", play)


def test_a_server_of_ascii_still_gives_utf8_databases(
    visit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ascii_by_default(*_: object) -> guest.Rights:
        return guest.Rights(
            "18.4",
            "SQL_ASCII",
            template_is_utf8=False,
            superuser=True,
            may_create_databases=True,
            may_create_roles=False,
        )

    monkeypatch.setattr(guest, "_rights", ascii_by_default)

    async def play(cluster: Cluster) -> None:
        async with await connect(await cluster.create_database("x")) as connection:
            row = await (await connection.execute("show server_encoding")).fetchone()
            assert row == ("UTF8",)

    visit("chief", "ascii", play)


def test_one_database_is_lent_to_one_at_a_time_and_given_back_empty(
    visit: Callable[..., None], host: OwnedCluster
) -> None:
    own = host.address.at("own")

    async def play(cluster: Cluster) -> None:
        assert not cluster.can_create_databases
        first = await cluster.create_database("first")
        second = asyncio.create_task(cluster.create_database("second"))
        async with await connect(first) as connection:
            await connection.execute('create schema "Odd name" create table t (id bigserial primary key)')
            await connection.execute("create type colour as enum ('red')")
            await connection.execute("create table public.jobs (id bigserial primary key, colour colour)")
            await connection.execute("create function public.f(colour, text) returns int language sql as 'select 1'")
            await connection.execute("create procedure public.p() language sql as 'select 1'")
            await connection.execute("create view public.v as select * from public.jobs")
            await connection.execute("create materialized view public.m as select 1 as x")
            await connection.execute("create aggregate public.total(int) (sfunc = int4pl, stype = int)")
            await connection.execute("create domain public.d as int")
            await connection.execute("create type public.pair as (a int, b int)")
        orphan = await connect(first)
        await orphan.execute("begin")
        await orphan.execute("lock table public.jobs")
        assert not second.done()
        await cluster.drop_database("somebody else's")
        assert not second.done()

        await cluster.drop_database("first")
        assert await second == first
        names = [
            name for _, name, _ in rows(own, (Path(guest.__file__).parent / "sql" / "list_objects.sql").read_text())
        ]
        assert names == ["queueproof_was_here"]
        await orphan.close()
        with pytest.raises(ValueError, match="no template"):
            await cluster.create_database("third", template="first")

    visit("poor", "own", play)
    assert rows(own, "select nspname from pg_namespace where nspname ~ 'queueproof|Odd'") == []


def test_what_a_killed_run_left_is_emptied(visit: Callable[..., None], host: OwnedCluster) -> None:
    own = host.address.at("own").as_user("poor")
    with psycopg.connect(own.dsn(), autocommit=True) as connection:
        connection.execute("create schema queueproof_was_here")
        connection.execute("create table public.left_behind ()")

    visit("poor", "own", nothing)

    assert rows(own, "select to_regclass('left_behind')::text") == [(None,)]


def test_what_a_killed_run_left_on_the_server_is_swept_and_what_a_living_one_has_is_not(
    visit: Callable[..., None], host: OwnedCluster, watchdog: Watchdog, tmp_path: Path
) -> None:
    with psycopg.connect(host.address.as_user("maker").dsn(), autocommit=True) as connection:
        connection.execute("create database queueproof_00000000_orders")
        connection.execute("create role queueproof_worker_00000000 login")
        connection.execute("grant queueproof_worker_00000000 to maker")

    async def play(cluster: Cluster) -> None:
        assert [name for _, name in rows(host.address, LEAVINGS)] == [cluster.worker_role]
        database = await cluster.create_database("alive")
        async with open_cluster(parse_server(cluster.address.url()), watchdog, tmp_path):
            pass
        async with await connect(cluster.as_worker(database)):
            pass

    visit("maker", "postgres", play)


def test_two_runs_do_not_share_the_one_database(
    visit: Callable[..., None], host: OwnedCluster, watchdog: Watchdog, tmp_path: Path
) -> None:
    async def play(cluster: Cluster) -> None:
        with pytest.raises(EnvironmentFailed, match="another run of queueproof is using"):
            async with open_cluster(parse_server(cluster.address.url()), watchdog, tmp_path):
                pytest.fail("two runs in one database")

    visit("poor", "own", play)
    visit("poor", "own", nothing)


def test_a_database_with_somebodys_things_is_refused_by_name(visit: Callable[..., None]) -> None:
    with pytest.raises(BadInput) as raised:
        visit("poor", "full_one", never)

    for name in ("full_one is not empty", "schema theirs", "table theirs.orders", "function public.price(integer)"):
        assert name in str(raised.value)
    assert "sequence" not in str(raised.value), "a serial's sequence is part of its table"


def test_what_was_there_survives_when_it_is_allowed(visit: Callable[..., None], host: OwnedCluster) -> None:
    full = host.address.at("full_one")

    async def play(cluster: Cluster) -> None:
        database = await cluster.create_database("x")
        async with await connect(database) as connection:
            await connection.execute("create table theirs.ours ()")
            await connection.execute("create schema ours create table jobs ()")

    visit("poor", "full_one", play, allow_existing=True)

    assert rows(full, "select to_regclass('theirs.orders')::text, to_regclass('theirs.ours')::text") == [
        ("theirs.orders", None)
    ]
    assert rows(full, "select nspname from pg_namespace where nspname in ('ours', 'queueproof_was_here')") == []


def test_a_worker_role_that_may_not_log_in_is_not_used(visit: Callable[..., None]) -> None:
    async def play(cluster: Cluster) -> None:
        assert cluster.worker_role == "lonely"

    visit("lonely", "lonelydb", play)


@pytest.mark.parametrize(
    ("user", "password", "dbname", "kind", "says"),
    [
        ("secretive", "wr0ng", "postgres", BadInput, 'password authentication failed for user "secretive"'),
        ("secretive", None, "postgres", BadInput, "no password supplied"),
        ("ghost", None, "postgres", BadInput, 'role "ghost" does not exist'),
        ("poor", None, "nowhere", BadInput, 'database "nowhere" does not exist'),
        ("poor", None, "ascii", EnvironmentFailed, "is encoded in SQL_ASCII"),
        ("poorer", None, "own", EnvironmentFailed, "may create neither databases nor schemas"),
    ],
)
def test_why_it_cannot_come_in(
    visit: Callable[..., None], user: str, password: str | None, dbname: str, kind: type[Problem], says: str
) -> None:
    with pytest.raises(kind) as raised:
        visit(user, dbname, never, password=password)

    assert says in str(raised.value)
    assert user in str(raised.value)
    assert "wr0ng" not in str(raised.value)


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/d", "cannot connect to 127.0.0.1:1 as user 'u': Connection refused"),
        ("postgresql://u:s3cret@nowhere.invalid/d", "cannot connect to nowhere.invalid:5432 as user 'u'"),
    ],
)
def test_nobody_there(dsn: str, says: str, watchdog: Watchdog, tmp_path: Path) -> None:
    async def play() -> None:
        async with open_cluster(parse_server(dsn), watchdog, tmp_path):
            pytest.fail("it was let in")

    with pytest.raises(EnvironmentFailed) as raised:
        asyncio.run(play())

    assert says in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_somebody_who_never_answers(watchdog: Watchdog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "REACH_SECONDS", 1)

    async def play(port: int) -> None:
        async with open_cluster(parse_server(f"postgresql://u@127.0.0.1:{port}/d"), watchdog, tmp_path):
            pytest.fail("it was let in")

    began = time.monotonic()
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(EnvironmentFailed, match=r"cannot connect to 127.0.0.1:\d+ as user 'u'"),
    ):
        asyncio.run(play(silent.getsockname()[1]))
    assert time.monotonic() - began < 6


def test_an_old_server_is_refused(visit: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "OLDEST", 190000)

    with pytest.raises(EnvironmentFailed, match=r"is PostgreSQL 18\.\d+.*; 19 or newer is needed"):
        visit("chief", "postgres", never)
