"""How a row transition is named: the one place where it is decided, asked directly."""

import asyncio
from typing import Any

import psycopg
import pytest

from harness.postgres.address import Address
from harness.postgres.statements import statement

AT = "2026-01-01 12:00:00+00"
OVER, LIVE, LATER = "2026-01-01 11:59:59+00", "2026-01-01 12:00:01+00", "2026-01-01 12:00:09+00"
NONE: tuple[Any, ...] = (None, None, None, None)

CASES = {
    "a new row": (NONE, ("pending", None, None, None), False, "enqueue"),
    "pending to running": (("pending", None, None, None), ("running", "a", "1", LIVE), False, "claim"),
    "another owner": (("running", "a", None, LIVE), ("running", "b", None, LATER), False, "claim"),
    "another token": (("running", "a", "1", LIVE), ("running", "a", "2", LATER), False, "claim"),
    "an owner that is taken away is no grant": (
        ("running", "a", None, LIVE),
        ("running", None, None, LIVE),
        False,
        "other",
    ),
    "a living lease moved": (("running", "a", None, LIVE), ("running", "a", None, LATER), False, "renew"),
    "an ended lease begun anew, no token": (
        ("running", "a", None, OVER),
        ("running", "a", None, LATER),
        False,
        "claim",
    ),
    "an ended lease moved under its token": (("running", "a", "1", OVER), ("running", "a", "1", LATER), False, "renew"),
    "one more attempt under one name, no token and no lease": (
        ("running", "a", None, None, 1),
        ("running", "a", None, None, 2),
        False,
        "claim",
    ),
    "an attempt counted under a living lease": (
        ("running", "a", None, LIVE, 1),
        ("running", "a", None, LIVE, 2),
        False,
        "other",
    ),
    "an attempt counted under its token": (
        ("running", "a", "1", None, 1),
        ("running", "a", "1", None, 2),
        False,
        "other",
    ),
    "a running row touched": (("running", "a", None, None, 1), ("running", "a", None, None, 1), False, "other"),
    "done": (("running", "a", "1", LIVE), ("done", "a", "1", None), False, "complete"),
    "done again": (("done", "a", "1", None), ("done", "b", "1", None), False, "complete"),
    "dead": (("running", "a", "1", LIVE), ("dead", "a", "1", None), False, "fail"),
    "to be tried again": (("running", "a", "1", LIVE), ("retry", None, "1", None), False, "fail"),
    "given back": (("running", "a", "1", LIVE), ("pending", None, "1", None), False, "release"),
    "deleted, which means done": (("running", "a", "1", LIVE), ("done", None, None, None), True, "complete"),
    "a finished row deleted": (("done", "a", "1", None), ("done", None, None, None), True, "retire"),
}


@pytest.fixture
def named(database: Address) -> Any:
    async def ask(old: tuple[Any, ...], new: tuple[Any, ...], deleted: bool) -> str:
        async with await psycopg.AsyncConnection.connect(database.dsn(), autocommit=True) as connection:
            await connection.execute("create schema queueproof")
            await connection.execute(statement("create_change"))
            cursor = await connection.execute(
                "select queueproof.change(%s, %s, %s, %s::timestamptz, %s, %s, %s, %s, %s::timestamptz, %s, %s, %s::timestamptz)",
                (*old, *(None,) * (5 - len(old)), *new, *(None,) * (5 - len(new)), deleted, AT),
            )
            row = await cursor.fetchone()
            assert row is not None
            return str(row[0])

    return ask


@pytest.mark.parametrize(("old", "new", "deleted", "wanted"), CASES.values(), ids=CASES.keys())
def test_a_transition_is_named(
    named: Any, old: tuple[Any, ...], new: tuple[Any, ...], deleted: bool, wanted: str
) -> None:
    assert asyncio.run(named(old, new, deleted)) == wanted
