"""Checks, before anything starts, that a role may do its part of the protocol and nothing else.

What it needs is read from ``sql/roles``, the very statements that grant it. Then every statement of its part is run as that
role, in a transaction that is rolled back.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from reference_queue.statements import Statements

PARTS = ("enqueue", "work", "operate", "read", "retain")
STATEMENTS = {
    "enqueue": ("read_schema", "enqueue", "find_duplicate"),
    "work": (
        "read_schema", "has_tenants", "takeover", "claim", "claim_of_tenants", "claim_overdue", "read_payload", "mark_calling",
        "record_result", "renew", "complete", "complete_together", "fail", "release", "read_own",
    ),
    "operate": ("read_schema", "show_job", "show_audit", "list_jobs", "status", "operate", "set_tenant"),
    "read": ("read_schema", "status", "show_job", "show_audit", "consistent", "metrics", "shadow"),
    "retain": ("read_schema", "retain"),
}  # fmt: skip

# Harmless values: no row matches them, and the server checks the grants all the same.
VALUES: dict[str, Any] = {
    "id": -1, "version": -1, "worker": "preflight", "kinds": ["preflight: no such kind"], "held": [], "lease": "1s",
    "longest_run": "1h", "overdue": "1s", "ids": [-1], "versions": [-1], "phase": "result_obtained", "remote_id": None,
    "reason": "preflight", "remote_ids": [None], "reasons": ["preflight"], "outcome": "retry", "absent": False, "error_class": "preflight", "error_code": None,
    "error_reason": "preflight", "response_id": None, "base": "1s", "cap": "1s", "jitter": 0.0, "key": "preflight",
    "kind": "preflight", "priority": 0, "run_at": None, "group": None, "tenant": None, "max_attempts": 1, "body": "{}",
    "business_key": None, "state": "paused", "after": 0, "keep": "1000 years", "expected_state": "paused",
    "expected_version": -1, "expected_lease": None, "from_states": ["paused"], "to_state": "dead", "fresh_attempts": False,
    "operator": "preflight", "most": 1, "tenant_name": "preflight", "most_running": 1,
}  # fmt: skip

_GRANT = re.compile(r"grant (\w+)(?: \(([^)]*)\))? on (\w+) to queue_(\w+);", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Privilege:
    """A privilege on a table, or on one of its columns."""

    table: str
    privilege: str
    column: str = ""


def needed(part: str) -> set[Privilege]:
    """What ``sql/roles`` grants for a part."""
    found: set[Privilege] = set()
    for file in resources.files(__package__).joinpath("sql", "roles").iterdir():
        match = _GRANT.search(file.read_text(encoding="utf-8"))
        if match is not None and match[4] == part:
            columns = [column.strip() for column in (match[2] or "").split(",")]
            found |= {Privilege(match[3], match[1].lower(), column) for column in columns}
    return found


def create_roles(connection: psycopg.Connection[Any]) -> None:
    """Make the groups and grant each what its part needs."""
    folder = resources.files(__package__).joinpath("sql", "roles")
    with connection.transaction():
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            connection.execute(file.read_text(encoding="utf-8"))


def preflight(connection: psycopg.Connection[Any], part: str, role: str | None = None) -> list[str]:
    """One sentence per finding; none: the role fits. ``role`` is taken on by SET ROLE; left out, it is the login role."""
    with connection.cursor(row_factory=dict_row) as cursor:
        if role is not None:
            cursor.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        try:
            who = cursor.execute(
                "select current_user as name, rolsuper from pg_roles where rolname = current_user"
            ).fetchone()
            assert who is not None
            if who["rolsuper"]:
                return [f"{who['name']} is a superuser: a service must not be one"]
            if not cursor.execute("select has_schema_privilege(current_schema(), 'usage') as may").fetchone()["may"]:  # type: ignore[index]
                return [f"missing: grant usage on schema to {who['name']}"]
            has = {
                Privilege(row["table"], row["privilege"], row["column"] or "")
                for row in cursor.execute(Statements().text("privileges"), {"role": who["name"]})
            }
            findings = [*_missing(needed(part), has, who["name"]), *_excessive(needed(part), has, who["name"])]
        finally:
            cursor.execute("reset role")
    return [*findings, *_rehearse(connection, part, role)]


def _missing(need: Iterable[Privilege], has: set[Privilege], role: str) -> list[str]:
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for privilege in sorted(need):
        whole = Privilege(privilege.table, privilege.privilege)
        if privilege not in has and whole not in has:
            lacking[privilege.table, privilege.privilege].append(privilege.column)
    return [f"missing: {_told(name, table, columns)} to {role}" for (table, name), columns in lacking.items()]


def _excessive(need: set[Privilege], has: Iterable[Privilege], role: str) -> list[str]:
    excess: dict[tuple[str, str], list[str]] = defaultdict(list)
    for privilege in sorted(has):
        if privilege not in need and Privilege(privilege.table, privilege.privilege) not in need:
            excess[privilege.table, privilege.privilege].append(privilege.column)
    return [
        f"excessive: revoke {_told(name, table, columns)[6:]} from {role}" for (table, name), columns in excess.items()
    ]


def _told(privilege: str, table: str, columns: list[str]) -> str:
    named = f" ({', '.join(columns)})" if any(columns) else ""
    return f"grant {privilege}{named} on {table}"


def _rehearse(connection: psycopg.Connection[Any], part: str, role: str | None) -> list[str]:
    """Every statement of the part, as the role; everything is rolled back."""
    refused: list[str] = []
    with connection.transaction(force_rollback=True):
        if role is not None:
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        for name in STATEMENTS[part]:
            try:
                with connection.transaction(force_rollback=True):
                    connection.execute(Statements().text(name), VALUES)
            except psycopg.Error as error:
                refused.append(f"refused: {name}.sql: {error.diag.message_primary}")
    return refused
