"""What the server shows about a backend or a row: the proof that a point was reached or a fault landed."""

from dataclasses import dataclass, field

import psycopg
from psycopg.rows import class_row

from harness.contracts.subject import JobsMapping
from harness.postgres.mapping import JobTable
from harness.postgres.statements import statement


@dataclass(frozen=True)
class Backend:
    """One backend as ``pg_stat_activity`` shows it."""

    pid: int
    state: str | None
    xid: str | None
    wait_event_type: str | None
    wait_event: str | None
    query: str | None
    blocked_by: list[int] = field(default_factory=list)

    def told(self) -> str:
        """The sentence that a report shows as proof."""
        wait = f", waits for {self.wait_event_type}/{self.wait_event}" if self.wait_event_type else ""
        behind = f" behind backend {', '.join(map(str, self.blocked_by))}" if self.blocked_by else ""
        xid = f", transaction {self.xid} in progress" if self.xid else ""
        return f"backend {self.pid} is {self.state or 'unknown'}{wait}{behind}{xid}"


@dataclass(frozen=True)
class HeldRow:
    """A row that a transaction in progress has locked or changed."""

    job: str
    key: str | None


class ServerView:
    """Looks, through one connection of the harness; changes nothing."""

    def __init__(self, connection: psycopg.AsyncConnection, mapping: JobsMapping, table: JobTable) -> None:
        self.connection = connection
        self._mapping = mapping
        self._table = table

    def move_to(self, connection: psycopg.AsyncConnection) -> None:
        """Go on with a new connection."""
        self.connection = connection

    async def backend(self, pid: int) -> Backend | None:
        """The backend of that pid, or None when it has ended."""
        cursor = self.connection.cursor(row_factory=class_row(Backend))
        await cursor.execute(statement("look_at_backend"), {"pid": pid})
        return await cursor.fetchone()

    async def backends(self) -> list[Backend]:
        """Every client backend in this database that is not ours."""
        cursor = self.connection.cursor(row_factory=class_row(Backend))
        await cursor.execute(statement("look_at_backends"), {})
        return await cursor.fetchall()

    async def rows_held_by(self, xid: str | None) -> list[HeldRow]:
        """The job rows that a transaction in progress has locked or changed (their ``xmax``)."""
        if xid is None:
            return []
        cursor = self.connection.cursor(row_factory=class_row(HeldRow))
        await cursor.execute(
            statement(
                "look_at_rows",
                id=self._mapping.id.replace("%", "%%"),  # a percent sign of theirs marks no parameter of ours
                key=self._mapping.key.replace("%", "%%"),
                table=self._table.name,
                table_name=self._table.alias,
            ),
            {"xid": xid},
        )
        return await cursor.fetchall()
