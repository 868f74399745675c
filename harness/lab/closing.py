"""The end of a play: nothing held, nobody alive, truth read to its end and compared with the table itself."""

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from harness.contracts.problem import EnvironmentFailed
from harness.history.events import Final, Inconsistent, Moved, Row, TruthIncomplete
from harness.history.recorder import DeadlinePassed
from harness.postgres.databases import first_line
from harness.postgres.mapping import expressions
from harness.postgres.statements import statement
from harness.postgres.truth import microseconds

if TYPE_CHECKING:
    from harness.lab.lab import Lab

BACKENDS_SECONDS = 5
_LOOK_SECONDS = 0.02


async def settle(lab: "Lab", admin: psycopg.AsyncConnection) -> None:
    """Open gates, end workers, wait for backends to end (ending what is left), then read truth and the table."""
    await lab.gates.open_all()
    for worker in lab.workers:
        await worker.close()
    await _end_backends(lab)
    await lab.watch.read_truth()
    if lab.watch.truth.error is not None:
        lab.recorder.record(TruthIncomplete(lab.watch.truth.error))
    await compare(lab, admin)
    await _ask_consistency(lab, admin)


async def abandon(lab: "Lab") -> None:
    """End a play that nobody will judge, on a cluster that goes with it: only what lives outside the server must end.

    The server may be down by our own fault: whatever fails for that goes with the server.
    """
    for worker in lab.workers:
        with contextlib.suppress(psycopg.Error):
            await worker.close()
    for injury in lab.injuries[::-1]:
        with contextlib.suppress(psycopg.Error, DeadlinePassed, EnvironmentFailed):
            await injury.heal()


async def _end_backends(lab: "Lab") -> None:
    deadline = time.monotonic() + BACKENDS_SECONDS
    while backends := await lab.view.backends():
        if time.monotonic() > deadline:
            for backend in backends:
                await lab.end_backend(backend.pid)
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def compare(lab: "Lab", admin: psycopg.AsyncConnection) -> None:
    """Record each job's last row; disagreement with truth means that truth missed something."""
    mapping = lab.subject.jobs
    cursor = admin.cursor(row_factory=dict_row)
    try:
        await cursor.execute(
            statement(
                "read_jobs",
                expressions=expressions(mapping),
                reading_from=mapping.reading_from or lab.ground.table.name,
            )
        )
    except (psycopg.errors.DataError, psycopg.ProgrammingError) as error:
        lab.recorder.record(TruthIncomplete(f"the table could not be read by the mapping: {first_line(error)}"))
        return
    rows = {row["key"]: row for row in await cursor.fetchall()}
    last = {entry.what.key: entry.what for entry in lab.recorder.entries if isinstance(entry.what, Moved)}
    by_clock = "clock_timestamp" in mapping.state or "now()" in mapping.state
    for key in lab.keys:
        row = rows.get(key)
        final = None if row is None else _row(row)
        lab.recorder.record(Final(key, None if row is None else row["job"], final))
        moved = last.get(key)
        if moved is not None and (difference := _difference(moved, final, by_clock=by_clock)):
            lab.recorder.record(TruthIncomplete(f"job {key!r}: {difference}"))


def _row(row: dict[str, Any]) -> Row:
    return Row(
        state=row["state"] or "",
        owner=row["owner"],
        token=row["token"],
        lease_us=microseconds(row["lease_until"]),
        attempts=row["attempts"],
        run_at_us=microseconds(row["run_at"]),
    )


def _difference(moved: Moved, final: Row | None, *, by_clock: bool) -> str | None:
    """What the table says that truth does not; a state that follows the clock may change without a write."""
    if final is None:
        return None if moved.deleted else "the row is gone, but truth has no transaction that deleted it"
    if moved.deleted or moved.new is None:
        return "truth says deleted, but the row is there"
    told, shown = moved.new, final
    if by_clock:
        same = (told.owner, told.token, told.lease_us) == (shown.owner, shown.token, shown.lease_us)
    else:
        same = (told.state, told.owner, told.token, told.lease_us) == (
            shown.state,
            shown.owner,
            shown.token,
            shown.lease_us,
        )
    return None if same else f"the row is {shown}, but the last transition that truth has left it {told}"


async def _ask_consistency(lab: "Lab", admin: psycopg.AsyncConnection) -> None:
    query = lab.subject.consistent_sql
    if query is None:
        return
    cursor = admin.cursor(row_factory=dict_row)
    await cursor.execute(query)
    for row in await cursor.fetchmany(20):
        lab.recorder.record(Inconsistent(", ".join(f"{name}={value}" for name, value in row.items())))
