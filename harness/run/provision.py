"""Prepares databases: one template with the subject and our objects in it, and a clone of it for each play."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import psycopg

from harness.contracts.problem import BadInput, EnvironmentFailed, SubjectFailed
from harness.contracts.subject import Subject
from harness.lab.ground import Ground
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster
from harness.postgres.mapping import JobTable, check_mapping, find_table
from harness.postgres.truth import install_truth, remove_truth
from harness.processes.command import TAIL_LINES, run_command
from harness.processes.output import printable_tail
from harness.processes.placeholders import fill
from harness.processes.watchdog import Watchdog
from harness.processes.worker import WorkerProcess
from harness.wire.statements import StatementBook

INSTALL_SECONDS = 60
FIRST_START_SECONDS = 20
TEMPLATE = "template"
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Site:
    """A cluster with the subject's template in it, ready to give each play its ground."""

    subject: Subject
    cluster: Cluster
    watchdog: Watchdog
    folder: Path
    path: str
    exclusive: bool = False  # one play has the cluster to itself, and may hurt it

    @contextlib.asynccontextmanager
    async def ground(self, play: str, book: StatementBook, learned: frozenset[str]) -> AsyncIterator[Ground]:
        """A database of the play's own. Where none can be made, the one that was lent is emptied and prepared anew."""
        folder = self.folder / "logs" / play.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        name = play.replace(":", "_")
        template = TEMPLATE if self.cluster.can_create_databases else None
        address = await self.cluster.create_database(name, template)
        goes_with_it = False
        try:
            if template is None:
                table = await prepare(self, address)
            else:
                async with _connected(address) as connection:
                    found = await find_table(connection, self.subject.jobs)
                    assert found is not None, "the template had the table"
                    table = found
            yield Ground(
                subject=self.subject,
                owner=address,
                worker=self.cluster.as_worker(address),
                table=table,
                folder=folder,
                watchdog=self.watchdog,
                book=book,
                fill=partial(fill, self.subject),
                path=self.path,
                learned=learned,
                own_cluster=self.cluster if self.exclusive and self.cluster.may_be_hurt else None,
                not_ours=self._not_ours(),
            )
            if template is None and not self.cluster.kept:
                async with _connected(address) as connection:
                    left = await remove_truth(connection, table)
                if left is not None:
                    raise EnvironmentFailed(left)
        except asyncio.CancelledError:
            # The run is over, and a cluster of ours with it; it may be down by our own fault.
            goes_with_it = self.cluster.may_be_hurt
            raise
        finally:
            if not self.cluster.kept and not goes_with_it:
                await self.cluster.drop_database(name)

    def _not_ours(self) -> str:
        if not self.cluster.may_be_hurt:
            return f"{self.cluster.address.shown()} is somebody's server, and is not hurt"
        return "the server is shared with other plays"


async def open_site(
    subject: Subject, cluster: Cluster, watchdog: Watchdog, folder: Path, *, exclusive: bool = False
) -> Site:
    """Install the subject once. Raises SubjectFailed or BadInput, in a sentence, when it cannot be driven at all."""
    programs = [str(cluster.programs)] if cluster.programs is not None else []
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *programs])
    site = Site(subject, cluster, watchdog, folder, path, exclusive)
    if cluster.can_create_databases:
        address = await cluster.create_database(TEMPLATE)
        await prepare(site, address)
    return site


async def prepare(site: Site, address: Address, *, truth: bool = True) -> JobTable:
    """Install the subject, try its mapping, and put our objects beside its table (not for a load run: ``truth`` False)."""
    subject = site.subject
    await _install(site, address)
    async with _connected(address) as connection:
        await _grant(connection, site)
        table = await find_table(connection, subject.jobs)
        if table is None and subject.install_after_start:
            await _first_start(site, address, connection)
            table = await find_table(connection, subject.jobs)
        if table is None:
            raise BadInput(
                f"subject.jobs.table: {subject.jobs.table!r} does not exist after install;"
                " name it with its schema, or set install.after_start = true when the worker creates it"
            )
        await check_mapping(connection, subject.jobs, table)
        if truth:
            await install_truth(connection, subject.jobs, table)
    return table


@contextlib.asynccontextmanager
async def _connected(address: Address) -> AsyncIterator[psycopg.AsyncConnection]:
    try:
        connection = await psycopg.AsyncConnection.connect(
            address.dsn(), autocommit=True, application_name="queueproof provision", connect_timeout=10
        )
    except psycopg.Error as error:
        raise EnvironmentFailed(f"cannot connect to {address.shown()}: {str(error).strip()}") from error
    async with connection:
        yield connection


async def _install(site: Site, address: Address) -> None:
    subject = site.subject
    async with _connected(address) as connection:
        for file in subject.install_sql:
            try:
                await connection.execute(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise BadInput(f"subject.install.sql: {file} cannot be read as UTF-8 text: {error}") from error
            except psycopg.Error as error:
                raise SubjectFailed(f"install of {subject.name} failed in {file}: {str(error).strip()}") from error
    if not subject.install_command:
        return
    command = [fill(subject, part) for part in subject.install_command]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "QUEUEPROOF_"))}
    env |= {"PATH": site.path, **address.env(), "DATABASE_URL": address.url()}
    env |= {name: fill(subject, value) for name, value in subject.worker_env.items()}
    what = f"subject.install.command of {subject.name}"
    done = await run_command(
        what, command, cwd=subject.folder, env=env, watchdog=site.watchdog, within_seconds=INSTALL_SECONDS
    )
    if done.code != 0:
        said = printable_tail(done.out, TAIL_LINES, address.password)
        raise SubjectFailed(
            f"{what} exited with {done.code}; the end of its output:\n{said.rstrip()}\n{done.errors}".rstrip()
        )


async def _grant(connection: psycopg.AsyncConnection, site: Site) -> None:
    """The worker role owns nothing; it may use what was installed, as a service role in production may."""
    if site.cluster.worker_role == site.cluster.address.user:
        return
    text = files("harness.run").joinpath("sql", "grant_worker.sql").read_text(encoding="utf-8")
    await connection.execute(psycopg.sql.SQL(text).format(role=psycopg.sql.Literal(site.cluster.worker_role)))


async def _first_start(site: Site, address: Address, connection: psycopg.AsyncConnection) -> None:
    """Run the worker once, unwatched, until the table that it creates is there."""
    subject = site.subject
    worker = WorkerProcess("the worker's first start")
    target = site.cluster.as_worker(address)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "QUEUEPROOF_"))}
    env |= {"PATH": site.path, **target.env(), "DATABASE_URL": target.url()}
    # Port 9 (discard) stands for an outside world that is not there yet: nothing is enqueued, so nothing may call.
    env |= {"QUEUEPROOF_SINK": "http://127.0.0.1:9/0", "QUEUEPROOF_WORKER": "w0", "QUEUEPROOF_SLOTS": "1"}
    env |= {name: fill(subject, value) for name, value in subject.worker_env.items()}
    command = [fill(subject, part) for part in subject.worker_command]
    await worker.start(command, subject.folder, env, site.folder / "first-start.log", site.watchdog)
    try:
        deadline = time.monotonic() + FIRST_START_SECONDS
        while await find_table(connection, subject.jobs) is None:
            if not worker.running or time.monotonic() > deadline:
                raise SubjectFailed(
                    f"the table {subject.jobs.table} did not appear within {FIRST_START_SECONDS} s of the worker's first"
                    f" start; the end of its output:\n{worker.tail()}"
                )
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        await worker.kill()
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
