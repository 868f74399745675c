"""A proxy before a real PostgreSQL, with a small table whose trigger announces as the truth trigger does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import uvloop

from harness.history.recorder import PlayRecorder, Recorder
from harness.postgres.address import Address
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy
from harness.wire.statements import StatementBook

SCHEMA = """
create table job (id bigint primary key, key text not null, status text not null default 'pending', owner text);
insert into job (id, key) select n, 'job-' || n from generate_series(1, 20) n;
create sequence told;
create function announce() returns trigger language plpgsql set client_min_messages = notice as $$
begin
  raise notice 'queueproof!%', jsonb_build_object(
    'seq', nextval('told'), 'xid', pg_current_xact_id()::text::bigint, 'key', new.key, 'job', new.id::text,
    'change', case new.status when 'running' then 'claim' when 'done' then 'complete' else 'other' end,
    'worker', nullif(current_setting('qp.worker', true), '')::int);
  return null;
end $$;
create trigger announce after update on job for each row execute function announce();
"""


@dataclass
class Wired:
    """The real thing: ``via`` is where a worker would connect, ``direct`` goes past the proxy."""

    proxy: Proxy
    play: PlayRecorder
    book: StatementBook
    direct: Address
    known: KnownJobs

    @property
    def via(self) -> Address:
        return self.direct.via("127.0.0.1", self.proxy.port)

    async def connect(self, *, autocommit: bool = True, **options: Any) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(
            self.via.dsn(), autocommit=autocommit, application_name="worker", **options
        )

    async def look(self, sql: str, *values: Any) -> Any:
        """One value, asked past the proxy."""
        async with await psycopg.AsyncConnection.connect(self.direct.dsn(), autocommit=True) as connection:
            row = await (await connection.execute(sql, values)).fetchone()
            return row[0] if row else None

    def events_of(self, kind: type) -> list[Any]:
        return [entry.what for entry in self.play.entries if isinstance(entry.what, kind)]


@contextlib.asynccontextmanager
async def wired_to(database: Address, folder: Path) -> AsyncIterator[Wired]:
    with Recorder(folder / "history.jsonl") as recorder:
        play = recorder.play("wire")
        book, known = StatementBook(), KnownJobs()
        known.add("job-1", "1")
        known.add("job-2", "2")
        proxy = Proxy(3, database.host, database.port, play, book, known)
        await proxy.start()
        try:
            yield Wired(proxy, play, book, database, known)
        finally:
            await proxy.close()


@pytest.fixture
def on_the_wire(database: Address, tmp_path: Path) -> Callable[[Callable[[Wired], Awaitable[None]]], None]:
    """Runs a story in uvloop, as in production, against a fresh table of twenty jobs."""
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        connection.execute(SCHEMA)

    async def go(story: Callable[[Wired], Awaitable[None]]) -> None:
        async with asyncio.timeout(60), wired_to(database, tmp_path) as wired:
            await story(wired)

    return lambda story: uvloop.run(go(story))
