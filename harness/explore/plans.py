"""What a statement may touch, by the server's own plan for it: the rows of jobs that it names, or anything.

A statement touches only the jobs that its parameters name when, in its plan,

- every scan of a table is an index scan whose condition pins the jobs' id or key column, on the jobs' table (planned with
  sequential scans disabled: which rows *qualify* does not depend on the plan that is used later);
- every other table is only inserted into, and has no unique key that a concurrent insert could meet, no foreign key and no
  trigger of the subject's own; and neither has the jobs' table such triggers, or row security;
- its text calls no function of the subject's, and none of PostgreSQL's that two sessions meet in (advisory locks,
  sequences set by hand, notifications).

A claim that was seen to change no row touches every row, and only reads; so does a plan that neither writes nor locks.
Everything else, and everything under an isolation
level above read committed, where a transaction's first snapshot matters to all that follows, touches everything.
"""

import enum
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import psycopg
import psycopg.adapt
from psycopg.pq import Format

from harness.contracts.subject import JobsMapping
from harness.explore.footprint import EVERYTHING, Footprint, footprint
from harness.explore.gate import Value
from harness.explore.reset import query
from harness.postgres.mapping import JobTable
from harness.wire.holds import RequestView

_MEETING = re.compile(
    r"advisory|pg_notify|\bnotify\b|\blisten\b|setval|lastval|currval|set_config|pg_sleep|\block\b\s+table|dblink|lo_|txid|xmin|xmax"
    r"|pg_stat|pg_locks|isolation|serializable|repeatable",
    re.IGNORECASE,
)
_PLAIN = re.compile(r'[a-z_][a-z0-9_$]*|"[^"]+"', re.IGNORECASE)
_WHOLE_NUMBERS = frozenset({20, 21, 23})
_SCANS = frozenset({"Index Scan", "Index Only Scan", "Bitmap Index Scan"})
_HARMLESS = frozenset({"Function Scan", "Table Function Scan"})


class Reach(enum.Enum):
    """How far a statement reaches, by its plan."""

    NAMED = "the rows it names"
    READS = "any row, reading only"
    EVERYTHING = "anything"


class Plans:
    """Asks the server once for each statement; ``prepare`` before the first."""

    def __init__(self, connection: psycopg.AsyncConnection, mapping: JobsMapping, table: JobTable) -> None:
        self._connection = connection
        self._table = table
        self._tables = {_bare(name) for name in (table.name, *table.partitions)}
        self._pins = [
            column.strip()
            for column in (mapping.id, mapping.key)
            if _PLAIN.fullmatch(column.strip().removesuffix("::text"))
        ]
        self._pins = [column.removesuffix("::text") for column in self._pins]
        self._functions: re.Pattern[str] | None = None
        self._meeting_tables: set[str] = set()
        self._strict = False
        self._answers: dict[str, Reach] = {}
        self._types: dict[str, tuple[int, ...]] = {}  # of a text's parameters, as the server infers them

    async def prepare(self) -> None:
        """Learn what may be hidden behind statements."""
        await self._connection.execute("set enable_seqscan = off")
        await self._connection.execute("set plan_cache_mode = force_generic_plan")
        cursor = await self._connection.execute("show default_transaction_isolation")
        row = await cursor.fetchone()
        self._strict = row is None or row[0] != "read committed"
        cursor = await self._connection.execute(query("list_scannable"))
        functions = []
        for kind, name, relation in await cursor.fetchall():
            if kind == "function":
                functions.append(re.escape(name))
            elif _bare(relation) in self._tables:
                self._strict = self._strict or kind in {"trigger", "policy"}
            else:
                self._meeting_tables.add(_bare(relation))
        if functions:
            self._functions = re.compile(rf"\b(?:{'|'.join(functions)})\b\s*\(", re.IGNORECASE)

    async def look(self, view: RequestView) -> None:
        """Find out about a statement before its footprint is asked for."""
        if view.fingerprint not in self._answers:
            self._answers[view.fingerprint] = await self._reach(view.sql)

    def footprint(self, view: RequestView, changes: Collection[str], *, moved: bool) -> Footprint:
        """What this request touched, if its statement has been looked at; ``moved``: it changed a job's row."""
        if not moved and "claim" in changes and not self._strict:
            return footprint(reads=["row:*"])
        reach = self._answers.get(view.fingerprint, Reach.EVERYTHING)
        if reach is Reach.READS and not moved:
            return footprint(reads=["row:*"])
        named = {*view.keys, *(key for job in view.jobs if (key := view.known.key_of(job)) is not None)}
        if named and reach is Reach.NAMED:
            return footprint(writes=[word for key in sorted(named) for word in (f"row:{key}", f"story:{key}")])
        return EVERYTHING

    def literals(self, sql: str, values: tuple[Value, ...] | None) -> tuple[str, ...] | None:
        """Parameters of a statement that has been looked at, as SQL literals. None when one cannot be read."""
        types = self._types.get(sql, ())
        if values is None or (values and len(types) != len(values)):
            return None
        told: list[str] = []
        transformer = psycopg.adapt.Transformer(self._connection)
        for (value, binary), type_ in zip(values, types, strict=True):
            if value is None:
                told.append("null")
                continue
            try:
                if not binary:
                    read: object = value.decode()
                elif type_ in _WHOLE_NUMBERS:  # the client may have declared a narrower one than the server infers
                    read = int.from_bytes(value, "big", signed=True)
                else:
                    read = transformer.get_loader(type_, Format.BINARY).load(value)
                told.append(psycopg.sql.Literal(read).as_string(self._connection))
            except (psycopg.Error, ValueError):
                return None
        return tuple(told)

    async def _reach(self, sql: str) -> Reach:
        try:
            plan = await self._plan(sql)
        except psycopg.Error:
            return (
                Reach.EVERYTHING
            )  # a statement that cannot be planned alone: several in one message, a cursor, a setting
        if self._strict or not self._pins or _MEETING.search(sql):
            return Reach.EVERYTHING
        if self._functions is not None and self._functions.search(sql):
            return Reach.EVERYTHING
        nodes = list(_nodes(plan))
        if not any(node.get("Node Type") in {"ModifyTable", "LockRows"} for node in nodes):
            return Reach.READS
        return Reach.NAMED if all(self._is_pinned(node) for node in nodes) else Reach.EVERYTHING

    async def _plan(self, sql: str) -> dict[str, Any]:
        connection = self._connection
        try:
            await connection.execute(b"prepare queueproof_plan as " + sql.strip().rstrip(";").encode())
            cursor = await connection.execute(
                "select parameter_types::oid[]::int8[] from pg_prepared_statements where name = 'queueproof_plan'"
            )
            row = await cursor.fetchone()
            types = self._types[sql] = tuple(row[0]) if row is not None else ()
            count = len(types)
            nulls = f"({', '.join(['null'] * count)})" if count else ""
            cursor = await connection.execute(f"explain (format json, verbose) execute queueproof_plan{nulls}".encode())
            shown = await cursor.fetchone()
        finally:
            await connection.execute("deallocate all")
        assert shown is not None
        said = shown[0] if not isinstance(shown[0], str) else json.loads(shown[0])
        top: dict[str, Any] = said[0]["Plan"]
        return top

    def _is_pinned(self, node: dict[str, Any]) -> bool:
        kind, relation = str(node.get("Node Type", "")), node.get("Relation Name")
        if kind == "ModifyTable":
            if relation in self._tables:
                return True
            return node.get("Operation") == "Insert" and relation not in self._meeting_tables
        if kind in _SCANS:
            condition = str(node.get("Index Cond", ""))
            if kind != "Bitmap Index Scan" and relation not in self._tables:
                return False
            return any(_pins(condition, column) for column in self._pins)
        if kind == "Bitmap Heap Scan":
            return relation in self._tables
        return relation is None and kind not in _HARMLESS


def _pins(condition: str, column: str) -> bool:
    """Whether an index condition compares the column itself for equality with something."""
    return bool(re.search(rf"\(\(*(?:\w+\.)?{re.escape(column)}\)?(?:::\w+)? = ", condition))


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip('"')


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
