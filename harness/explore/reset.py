"""Empties the subject's tables between two schedules, quickly, and puts back what stood in them before the first job."""

from dataclasses import dataclass, field
from importlib.resources import files

import psycopg

from harness.contracts.problem import EnvironmentFailed

VACUUM_EVERY = 200


def query(name: str) -> str:
    """One of this package's statements."""
    return files("harness.explore").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


@dataclass
class Reset:
    """Made once per database, before the first job; ``run`` then takes about a millisecond.

    As a superuser rows are deleted with foreign keys and the subject's own triggers asleep; else the tables are truncated.
    Dead rows are vacuumed away now and then, so that the last schedule is as quick as the first.
    """

    connection: psycopg.AsyncConnection
    _text: str = ""
    _tables: list[str] = field(default_factory=list)
    _runs: int = 0

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self._tables)

    async def prepare(self) -> None:
        """Learn which tables there are and what stands in them."""
        cursor = await self.connection.execute(query("list_tables"))
        self._tables = [str(row[0]) for row in await cursor.fetchall()]
        quick = await self._may_sleep_triggers()
        ours = "truncate queueproof.truth, queueproof.enqueued"
        parts: list[str] = []
        kept: list[str] = []
        for number, table in enumerate(self._tables):
            if await self._has_rows(table):
                await self.connection.execute(f"drop table if exists queueproof.kept_{number}")
                await self.connection.execute(f"create table queueproof.kept_{number} as table {table}")
                columns = await self._columns(table)
                kept.append(
                    f"insert into {table} ({columns}) overriding system value select {columns} from queueproof.kept_{number}"
                )
        if quick:
            ours = "delete from queueproof.truth; delete from queueproof.enqueued"
            parts = [f"delete from {table}" for table in self._tables]
        elif self._tables:
            parts = [f"truncate {', '.join(self._tables)} cascade"]
        self._text = "; ".join(["begin", *parts, *kept, ours, "commit"])

    async def _may_sleep_triggers(self) -> bool:
        try:
            await self.connection.execute("set session_replication_role = replica")
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True

    async def _has_rows(self, table: str) -> bool:
        cursor = await self.connection.execute(f"select exists (select from {table})")
        row = await cursor.fetchone()
        return bool(row and row[0])

    async def _columns(self, table: str) -> str:
        cursor = await self.connection.execute(
            "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
            (table,),
        )
        row = await cursor.fetchone()
        assert row is not None
        return str(row[0])

    async def run(self) -> None:
        """Back to the state of ``prepare``. Nobody may hold a lock on the subject's tables."""
        try:
            await self.connection.execute(self._text)
        except psycopg.Error as error:
            raise EnvironmentFailed(
                f"the tables cannot be emptied between two schedules: {str(error).strip()}"
            ) from error
        self._runs += 1
        if self._runs % VACUUM_EVERY == 0:
            for table in (*self._tables, "queueproof.truth", "queueproof.enqueued"):
                await self.connection.execute(f"vacuum {table}")
