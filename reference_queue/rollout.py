"""What one wants to know while a queue replaces another: does it agree, who else writes, is there room, how long a lease."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reference_queue.statements import Statements


@dataclass(frozen=True)
class Difference:
    """Our order of what runs next against another queue's."""

    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    first_out_of_order: tuple[int, str, str] | None  # position from 1, here, there

    @property
    def agrees(self) -> bool:
        return not self.only_here and not self.only_there and self.first_out_of_order is None


def compare(here: Sequence[str], there: Sequence[str]) -> Difference:
    """Two orders of operation keys. The order is judged on the keys that both have."""
    both = set(here) & set(there)
    ours, theirs = [key for key in here if key in both], [key for key in there if key in both]
    differing = next(((n, a, b) for n, (a, b) in enumerate(zip(ours, theirs, strict=False), 1) if a != b), None)
    return Difference(
        tuple(key for key in here if key not in both), tuple(key for key in there if key not in both), differing
    )


def shadow(connection: psycopg.Connection[Any], other_query: str, most: int = 1000) -> Difference:
    """Read what both queues would run next, in one read-only snapshot; nothing is claimed or locked.

    ``other_query`` returns the other queue's operation keys in its order, as text in the first column.
    """
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        here = [str(_only(row)) for row in connection.execute(Statements().text("shadow"), {"most": most})]
        there = [str(_only(row)) for row in connection.execute(other_query).fetchmany(most)]
    return compare(here, there)


def state_writers(connection: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """Roles that could write a job's state behind the protocol's back."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(Statements().text("state_writers"), {}).fetchall()


def connections_of(slots: int) -> int:
    """What one worker may open at most: its sessions and the heartbeat's own."""
    from reference_queue.worker import sessions_for

    return sessions_for(slots) + 1


def budget(connection: psycopg.Connection[Any], workers: int, slots: int) -> str | None:
    """None when there is room for that many workers beside what is connected now; else the refusal."""
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(Statements().text("connections")).fetchone()
    assert found is not None
    wanted = workers * connections_of(slots)
    room = found["most"] - found["reserved"] - found["used"]
    if found["own_limit"] >= 0:
        room = min(room, found["own_limit"])
    if wanted <= room:
        return None
    return (
        f"{workers} workers of {slots} slots open up to {wanted} connections, and {max(room, 0)} are free: of {found['most']} "
        f"{found['reserved']} are reserved and {found['used']} in use; start fewer workers, or raise max_connections"
    )


@dataclass(frozen=True)
class LeaseAdvice:
    """A recommended lease and what it rests on."""

    lease_seconds: float
    heartbeat_seconds: float
    p99_seconds: float
    pause_seconds: float
    attempts: int


def recommend_lease(p99_seconds: float, pause_seconds: float, attempts: int) -> LeaseAdvice:
    """A lease that covers the 99th percentile of attempts and twice the longest pause seen, with a fifth to spare.

    Heartbeats lengthen it for the rest; so that two in a row may be late, they come at a third of it.
    """
    lease = math.ceil(max(1.2 * (p99_seconds + 2 * pause_seconds), 6 * pause_seconds, 1.0))
    return LeaseAdvice(lease, round(lease / 3, 2), p99_seconds, pause_seconds, attempts)


def longest_pause(
    connection: psycopg.Connection[Any], observe_seconds: float, pause: Callable[[float], None] = time.sleep
) -> float:
    """The longest time that this machine overslept, or that the server took to answer, while we looked."""
    until = time.monotonic() + observe_seconds
    longest = 0.0
    while (began := time.monotonic()) < until:
        pause(0.01)
        woke = time.monotonic()
        connection.execute("select 1")
        longest = max(longest, woke - began - 0.01, time.monotonic() - woke)
    return longest


def durations(connection: psycopg.Connection[Any], since: str) -> list[dict[str, Any]]:
    """Measured durations of attempts, per kind."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(Statements().text("durations"), {"since": since}).fetchall()


def _only(row: Any) -> Any:
    return next(iter(row.values())) if isinstance(row, dict) else row[0]
