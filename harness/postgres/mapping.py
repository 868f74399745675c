"""Tries a subject's mapping against its own table before anything rests on it.

An expression that is not text, reaches outside its table, or errors on one state would break the user's own UPDATE, or be
taken for the queue's fault; so it is refused here, with every mistake named at once.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from harness.contracts.problem import BadInput
from harness.contracts.subject import JobsMapping, State

TYPES = {
    "id": "text",
    "key": "text",
    "state": "text",
    "owner": "text",
    "token": "text",
    "lease_until": "timestamptz",
    "attempts": "integer",
    "run_at": "timestamptz",
}

_RELATION = re.compile(r'"Relation Name": "([^"]+)"')
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class JobTable:
    """The subject's table as the server knows it: quoted name, bare name for aliases, and the schemas to look things up in."""

    name: str
    alias: str
    search_path: str
    partitions: tuple[str, ...]


def expressions(mapping: JobsMapping) -> str:
    """The select list of the mapping, one item per column of ``queueproof.mapped``, each cast to its type and named."""
    return ", ".join(
        f"({getattr(mapping, name) or 'null'})::{kind} as {'job' if name == 'id' else name}"
        for name, kind in TYPES.items()
    )


async def find_table(connection: psycopg.AsyncConnection, mapping: JobsMapping) -> JobTable | None:
    """The mapped table, or None when it does not exist (yet)."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(
        "select c.oid::regclass::text as name, quote_ident(c.relname) as alias, quote_ident(n.nspname) as schema"
        " from pg_class as c join pg_namespace as n on n.oid = c.relnamespace where c.oid = to_regclass(%s)",
        (mapping.table,),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    await cursor.execute(
        "with recursive tree as (select to_regclass(%(table)s)::oid as oid union all"
        " select i.inhrelid from pg_inherits as i join tree on i.inhparent = tree.oid)"
        " select oid::regclass::text as name from tree",
        {"table": mapping.table},
    )
    partitions = tuple(part["name"] for part in await cursor.fetchall())
    schemas = dict.fromkeys((row["schema"], "public"))
    return JobTable(row["name"], row["alias"], ", ".join(schemas), partitions)


async def check_mapping(connection: psycopg.AsyncConnection, mapping: JobsMapping, table: JobTable) -> None:
    """Evaluate every expression on rows made up for the purpose. Raises BadInput with every mistake."""
    mistakes: list[str] = []
    columns = await _columns(connection, table)
    for name, kind in TYPES.items():
        expression = getattr(mapping, name)
        if expression is None:
            continue
        field = f"subject.jobs.{name}"
        try:
            async with connection.transaction(force_rollback=True):
                cursor = await connection.execute(
                    sql.SQL(f"select pg_typeof(({expression})) from (select (null::{table.name}).*) as {table.alias}")
                )
                found = await cursor.fetchone()
                elsewhere = await _read_elsewhere(connection, table, expression)
        except psycopg.Error as error:
            mistakes.append(f"{field}: {expression!r}: the server says: {_first_line(error)}")
            continue
        if elsewhere is not None:
            mistakes.append(
                f"{field}: {expression!r} reads {elsewhere}: a row is judged by its own columns as they are committed;"
                " for reading more than the table there is subject.jobs.from"
            )
            continue
        given = str(found[0]) if found else "nothing"
        if kind == "text" and name in {"state", "key"} and given not in {"text", "character varying", "unknown"}:
            mistakes.append(f"{field}: {expression!r} is of type {given}, not text; write ({expression})::text")
            continue
        mistakes += await _try_values(connection, table, columns, name, expression)
    if mistakes:
        raise BadInput(*mistakes)


async def _read_elsewhere(connection: psycopg.AsyncConnection, table: JobTable, expression: str) -> str | None:
    """The relation that the expression reads besides the row itself, by the server's own plan; None for none."""
    cursor = await connection.execute(
        sql.SQL(f"explain (format json) select ({expression}) from (select (null::{table.name}).*) as {table.alias}")
    )
    row = await cursor.fetchone()
    found = _RELATION.search(json.dumps(row[0])) if row else None
    return found[1] if found else None


async def _columns(connection: psycopg.AsyncConnection, table: JobTable) -> dict[str, tuple[str, ...]]:
    """Per text or enum column of the table: its enum labels, and the literals that its check constraints name."""
    cursor = await connection.execute(
        "select a.attname, coalesce((select array_agg(e.enumlabel::text) from pg_enum as e where e.enumtypid = a.atttypid), '{}'),"
        " coalesce((select string_agg(pg_get_constraintdef(k.oid), ' ') from pg_constraint as k"
        " where k.conrelid = a.attrelid and k.contype = 'c' and a.attnum = any(k.conkey)), ''),"
        " t.typtype = 'e' from pg_attribute as a join pg_type as t on t.oid = a.atttypid"
        " where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped"
        " and (t.typtype = 'e' or t.typcategory = 'S')",
        (table.name,),
    )
    found: dict[str, tuple[str, ...]] = {}
    for name, labels, checks, is_enum in await cursor.fetchall():
        found[name] = tuple(labels) if is_enum else tuple(_literals(checks))
    return found


def _literals(text: str) -> list[str]:
    return [match.replace("''", "'") for match in _LITERAL.findall(text)]


async def _try_values(
    connection: psycopg.AsyncConnection,
    table: JobTable,
    columns: dict[str, tuple[str, ...]],
    name: str,
    expression: str,
) -> Iterable[str]:
    """Evaluate one expression with each value that its text columns are known to take."""
    mistakes: list[str] = []
    for column, allowed in columns.items():
        if not re.search(rf"\b{re.escape(column)}\b", expression):
            continue
        values = allowed or tuple(dict.fromkeys(_literals(expression)))
        for value in values:
            try:
                async with connection.transaction(force_rollback=True):
                    cursor = await connection.execute(
                        sql.SQL(
                            f"select ({expression.replace('%', '%%')})::text from (select (jsonb_populate_record(null::{table.name},"
                            f" jsonb_build_object(%s::text, %s::text))).*) as {table.alias}"
                        ),
                        (column, value),
                    )
                    found = await cursor.fetchone()
            except psycopg.Error as error:
                mistakes.append(
                    f"subject.jobs.{name}: {expression!r} errors when {column} is {value!r}: {_first_line(error)}"
                )
                continue
            state = found[0] if found else None
            if name == "state" and allowed and state is not None and state not in set(State):
                mistakes.append(
                    f"subject.jobs.state: yields {state!r} when {column} is {value!r};"
                    f" map it to one of {', '.join(State)}"
                )
    return mistakes


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
