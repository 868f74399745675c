"""The subject's table as a load run reads it: how many jobs are in which state, and how each one ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from harness.contracts.subject import JobsMapping
from harness.postgres.mapping import JobTable


@dataclass(frozen=True)
class Counts:
    """Our jobs by state, at one snapshot. ``scheduled``: due later. ``set_aside``: for a person."""

    total: int
    due: int
    scheduled: int
    running: int
    done: int
    dead: int
    set_aside: int
    oldest_due_seconds: float
    oldest_unfinished: str | None
    lease_over: int
    orphans: int

    @property
    def accounted(self) -> int:
        """Every state there is, summed."""
        return self.due + self.scheduled + self.running + self.done + self.dead + self.set_aside


@dataclass(frozen=True)
class Ended:
    """One job at the end."""

    key: str
    state: str
    attempts: int


@cache
def statement(name: str) -> str:
    """One of ``sql/``, without its comment."""
    text = files("harness.load").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip().rstrip(";")


class LoadTable:
    """Reads; changes nothing."""

    def __init__(self, mapping: JobsMapping, table: JobTable, prefix: str) -> None:
        self.mapping, self.table, self.prefix = mapping, table, prefix
        self._fields = {
            "state": mapping.state,
            "key": mapping.key,
            "owner": mapping.owner or "null::text",
            "run_at": mapping.run_at or "null::timestamptz",
            "lease_until": mapping.lease_until or "null::timestamptz",
            "attempts": mapping.attempts or "0",
            "source": mapping.reading_from or table.name,
        }

    @property
    def deletes(self) -> bool:
        """Whether a finished job's row goes away, so that done is what is missing."""
        return self.mapping.deleted == "done"

    @property
    def known_sql(self) -> str:
        """Which of ``%(keys)s`` are there."""
        return self._filled("known_keys")

    async def counts(self, connection: psycopg.AsyncConnection[Any], alive: Sequence[str]) -> Counts:
        """Now."""
        cursor = connection.cursor(row_factory=class_row(Counts))
        await cursor.execute(self._filled("sample_jobs"), {"prefix": self.prefix, "alive": list(alive)})
        row = await cursor.fetchone()
        assert row is not None
        return row

    async def given_up(self, connection: psycopg.AsyncConnection[Any]) -> list[str]:
        """Keys of ours that are dead or set aside."""
        cursor = await connection.execute(self._filled("given_up"), {"prefix": self.prefix})
        return [key for (key,) in await cursor.fetchall()]

    async def ended(self, connection: psycopg.AsyncConnection[Any]) -> list[Ended]:
        """All of ours."""
        cursor = connection.cursor(row_factory=class_row(Ended))
        await cursor.execute(self._filled("final_states"), {"prefix": self.prefix})
        return await cursor.fetchall()

    async def server(self, connection: psycopg.AsyncConnection[Any], worker_role: str) -> dict[str, Any]:
        """What the server shows of itself."""
        cursor = connection.cursor(row_factory=dict_row)
        await cursor.execute(statement("sample_server"), {"table": self.table.name, "worker_role": worker_role})
        row = await cursor.fetchone()
        assert row is not None
        return row

    def _filled(self, name: str) -> str:
        text = statement(name)
        for field, expression in self._fields.items():
            text = text.replace("{" + field + "}", expression.replace("%", "%%"))
        return text
