"""What a person may do to a job: pause, resume, confirm, requeue, cancel. There is no "reset all running".

Each move names the state, the version and the lease that the person saw. If the job has moved on meanwhile, nothing happens.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reference_queue.statements import Statements

LONGEST_REASON = 500


class Refused(Exception):
    """The move was not made, and nothing was changed. The message says why and what to do."""


@dataclass(frozen=True)
class Move:
    """One kind of move, as data."""

    from_states: tuple[str, ...]
    to_state: str
    fresh_attempts: bool = False
    phase: str | None = None
    meaning: str = ""


MOVES = {
    "pause": Move(("pending", "retry", "running"), "paused", meaning="hold a job; a worker that has it loses it"),
    "resume": Move(("paused",), "retry", meaning="let a paused job go on with the attempts that it has left"),
    "confirm": Move(
        ("paused", "reconcile", "dead"),
        "done",
        phase="result_obtained",
        meaning="you have seen outside that it was done; give the remote number",
    ),
    "requeue": Move(
        ("paused", "reconcile", "dead"),
        "pending",
        fresh_attempts=True,
        meaning="start over; the next attempt asks the outside first if a call may have happened",
    ),
    "cancel": Move(
        ("pending", "retry", "running", "paused", "reconcile"), "dead", meaning="end it; what was called stays called"
    ),
}


@dataclass(frozen=True)
class Seen:
    """What the person saw before deciding."""

    state: str
    version: int
    lease_until: dt.datetime | None


def show(connection: psycopg.Connection[Any], job_id: int) -> dict[str, Any]:
    """The job and its audit. Raises Refused when there is none."""
    texts = Statements()
    with connection.cursor(row_factory=dict_row) as cursor:
        job = cursor.execute(texts.text("show_job"), {"id": job_id}).fetchone()
        if job is None:
            raise Refused(f"there is no job {job_id}")
        return {**job, "audit": cursor.execute(texts.text("show_audit"), {"id": job_id}).fetchall()}


def listed(connection: psycopg.Connection[Any], state: str) -> list[dict[str, Any]]:
    """Up to a thousand jobs of a state, longest there first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(Statements().text("list_jobs"), {"state": state}).fetchall()


def move(
    connection: psycopg.Connection[Any],
    name: str,
    job_id: int,
    seen: Seen,
    *,
    operator: str,
    reason: str,
    remote_id: str | None = None,
) -> Mapping[str, Any]:
    """Make the move if the job still is as it was seen. Returns its new state and version."""
    wanted = MOVES[name]
    if not reason.strip() or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise Refused(f"a reason of 1 to {LONGEST_REASON} printable characters is required; it is kept in the audit")
    if seen.state not in wanted.from_states:
        raise Refused(f"{name} is for jobs that are {' or '.join(wanted.from_states)}; this one is {seen.state}")
    values = {
        "id": job_id,
        "expected_state": seen.state,
        "expected_version": seen.version,
        "expected_lease": seen.lease_until,
        "from_states": list(wanted.from_states),
        "to_state": wanted.to_state,
        "fresh_attempts": wanted.fresh_attempts,
        "phase": wanted.phase,
        "remote_id": remote_id if name == "confirm" else None,
        "operator": operator,
        "reason": f"{name}: {reason}",
    }
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            moved = cursor.execute(Statements().text("operate"), values).fetchone()
    except psycopg.errors.UniqueViolation as error:
        raise Refused("another job with the same business key is active; end that one first") from error
    except psycopg.errors.CheckViolation as error:
        raise Refused("the job has no attempts left to go on with; requeue gives it new ones") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused("this role may not operate: it must be a member of queue_operate") from error
    if moved is None:
        raise Refused(_what_changed(show(connection, job_id), seen))
    return moved


def _what_changed(job: Mapping[str, Any], seen: Seen) -> str:
    changes = [
        f"{name} is now {now}, not {then}"
        for name, now, then in (
            ("state", job["state"], seen.state),
            ("version", job["version"], seen.version),
            ("lease", job["lease_until"], seen.lease_until),
        )
        if now != then
    ]
    return f"the job is not as you saw it: {'; '.join(changes) or 'it changed at this moment'}. Look again and decide again."
