"""The protocol's moves, each one statement and one request. Answers are what the database returned, never what we hoped."""

import asyncio
import enum
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from reference_queue.failures import Failure
from reference_queue.grants import Grant, Phase
from reference_queue.metrics import Metrics
from reference_queue.sessions import Conflict, NothingHappened, Sessions, Unknown
from reference_queue.settings import Settings
from reference_queue.statements import Statements

CLAIM_TRIES = 5
SECONDS_BETWEEN_TENANTS = 5.0
# Sizes that a batch is rounded down to: each is a statement of its own to the server.
BATCHES = (100, 50, 20, 10, 5, 3, 2, 1)
LONGEST_INSISTENCE_SECONDS = 60.0
MOST_TOGETHER = 100

log = logging.getLogger("reference_queue")


class Ours(enum.StrEnum):
    """Whether a guarded write was ours to make."""

    WON = "won"
    LOST = "lost"  # zero rows: another grant, or an operator, has the job; stop and write nothing
    UNKNOWN = "unknown"  # we could not find out in time; the lease decides


class Together(enum.Enum):
    """What became of a result that was to be written together with others."""

    WRITTEN = enum.auto()
    ALONE = enum.auto()  # not written: nothing to go with, or the row is locked, or it is not ours any more
    IN_DOUBT = enum.auto()


@dataclass(frozen=True)
class Result:
    """A completion that waits to be written."""

    grant: Grant
    remote_id: str | None
    reason: str
    fate: asyncio.Future[Together]


class Protocol:
    """The moves of one worker."""

    def __init__(
        self, settings: Settings, statements: Statements, sessions: Sessions, kinds: Sequence[str], metrics: Metrics
    ) -> None:
        self._settings = settings
        self._statements = statements
        self._sessions = sessions
        self._kinds = list(kinds)
        self._metrics = metrics
        self._tenants = False
        self._next_tenants = 0.0
        # Whoever replaces complete.sql must see his statement at work, with any number of slots.
        replaced = [statements.is_replaced(name) for name in ("complete", "complete_together")]
        self._writes_together = settings.slots > 1 and replaced != [True, False]
        self._results: list[Result] = []
        self._writer: asyncio.Task[None] | None = None

    async def claim(self, count: int) -> list[Grant]:
        """Grants of due jobs. An empty answer means that nothing could be locked now, not that nothing is there."""
        rows, deadline = await self._grant("claim", count, {})
        return [Grant.from_row(row, deadline) for row in rows]

    async def claim_of_tenants(self, count: int) -> list[Grant]:
        """The same for jobs of tenants, within their caps."""
        rows, deadline = await self._grant("claim_of_tenants", count, {})
        return [Grant.from_row(row, deadline) for row in rows]

    async def claim_overdue(self, count: int) -> list[Grant]:
        """By age alone, for jobs that have been due for long."""
        rows, deadline = await self._grant("claim_overdue", count, {"overdue": self._settings.overdue})
        return [Grant.from_row(row, deadline) for row in rows]

    async def has_tenants(self) -> bool:
        """Whether any tenant may run jobs here; looked up every few seconds."""
        if time.monotonic() >= self._next_tenants:
            rows = await self._sessions.run(self._statements.text("has_tenants"), {})
            self._tenants = bool(rows[0]["has_tenants"])
            self._next_tenants = time.monotonic() + SECONDS_BETWEEN_TENANTS
        return self._tenants

    async def take_over(self, count: int, held: Sequence[int]) -> list[Grant]:
        """Grants of jobs whose lease is over. Those that ended right there are not among them."""
        rows, deadline = await self._grant("takeover", count, {"held": list(held)})
        for row in rows:
            if row["state"] != "running":
                log.warning("job=%d ended=%s reason=attempts_used_up", row["id"], row["state"])
        return [Grant.from_row(row, deadline) for row in rows if row["state"] == "running"]

    async def _grant(self, name: str, count: int, more: Mapping[str, Any]) -> tuple[list[Any], float]:
        """Ask for grants; a conflict is tried again, for nothing outside has happened yet.

        A lost reply is not: those jobs are ours by the table and unknown to us, so their lease must save them.
        """
        batch = next(size for size in BATCHES if size <= max(count, 1))
        text = self._statements.text(name, batch)
        values = {"kinds": self._kinds, "worker": self._settings.worker, "lease": self._settings.lease, **more}
        for tries in range(1, CLAIM_TRIES + 1):
            sent = time.monotonic()
            try:
                rows = await self._sessions.run(text, values)
            except Conflict as conflict:
                self._metrics.add("claim_conflicts_total", label=str(conflict))
                log.info("%s conflict=%s try=%d", name, conflict, tries)
                await asyncio.sleep(random.uniform(0, 0.01 * 2**tries))
            else:
                self._metrics.add("claims_total", label=name)
                self._metrics.add("claim_seconds_sum", time.monotonic() - sent, name)
                self._metrics.add("claimed_jobs_total", len(rows), name)
                return rows, sent + self._settings.lease_seconds
        return [], 0.0

    async def mark_calling(self, grant: Grant) -> Ours:
        """May be repeated freely: it says the same each time, and only while the grant is ours and its lease lasts."""
        return await self._insist("mark_calling", grant, {}, happened=())

    async def record_result(self, grant: Grant, phase: Phase, remote_id: str | None) -> Ours:
        return await self._insist("record_result", grant, {"phase": phase.value, "remote_id": remote_id}, happened=())

    async def complete(self, grant: Grant, remote_id: str | None, reason: str) -> Ours:
        """With several slots, results that come at the same moment are written together; nobody waits for more to come."""
        fate = Together.ALONE
        if self._writes_together:
            result = Result(grant, remote_id, reason, asyncio.get_running_loop().create_future())
            self._results.append(result)
            if self._writer is None:
                self._writer = asyncio.create_task(self._write_results())
            fate = await result.fate
        if fate is Together.WRITTEN:
            return Ours.WON
        values = {"remote_id": remote_id, "reason": reason}
        return await self._insist("complete", grant, values, happened=("done",), in_doubt=fate is Together.IN_DOUBT)

    async def _write_results(self) -> None:
        """Write what there is, then what came meanwhile, until nothing is left. A row that is locked is never waited for."""
        await asyncio.sleep(0)  # the results of this moment
        while self._results:
            together, self._results = self._results[:MOST_TOGETHER], self._results[MOST_TOGETHER:]
            fates: Mapping[int, Together] = {}
            try:
                fates = await self._complete_together(together) if len(together) > 1 else {}
            finally:  # whatever happens, nobody waits for ever
                for result in together:
                    if not result.fate.done():
                        result.fate.set_result(fates.get(result.grant.id, Together.ALONE))
        self._writer = None

    async def _complete_together(self, results: Sequence[Result]) -> Mapping[int, Together]:
        values: dict[str, Any] = {
            "ids": [result.grant.id for result in results],
            "versions": [result.grant.version for result in results],
            "remote_ids": [result.remote_id for result in results],
            "reasons": [result.reason for result in results],
            "worker": self._settings.worker,
        }
        try:
            rows = await self._sessions.run(self._statements.text("complete_together"), values)
        except Unknown as error:
            log.warning("complete_together jobs=%d unknown=%s", len(results), error)
            return {result.grant.id: Together.IN_DOUBT for result in results}
        except (NothingHappened, psycopg.Error) as error:
            # Rolled back as a whole. Alone, each of them finds out for itself what is wrong.
            log.info("complete_together jobs=%d nothing_happened=%s", len(results), type(error).__name__)
            return {}
        return {row["id"]: Together.WRITTEN for row in rows}

    async def fail(self, grant: Grant, failure: Failure, *, absent: bool = False) -> Ours:
        """``absent``: the outside says that the effect does not exist."""
        values = {
            "outcome": failure.outcome,
            "absent": absent,
            "error_class": failure.error_class,
            "error_code": failure.code,
            "error_reason": failure.reason,
            "response_id": failure.response_id,
            "base": f"{self._settings.backoff_base_seconds} seconds",
            "cap": f"{self._settings.backoff_cap_seconds} seconds",
            "jitter": self._settings.backoff_jitter,
        }
        return await self._insist("fail", grant, values, happened=("retry", "dead", "paused", "reconcile"))

    async def release(self, grants: Sequence[Grant], reason: str) -> None:
        """Give back what was not started. One try: should it get lost, the leases end by themselves."""
        if not grants:
            return
        values = {
            "ids": [grant.id for grant in grants],
            "versions": [grant.version for grant in grants],
            "worker": self._settings.worker,
            "reason": reason,
        }
        try:
            rows = await self._sessions.run(self._statements.text("release"), values)
        except (NothingHappened, Unknown) as error:
            log.warning("release jobs=%d failed=%s", len(grants), type(error).__name__)
        else:
            log.info("released jobs=%d of=%d", len(rows), len(grants))

    async def payload(self, grant: Grant) -> Any:
        rows = await self._sessions.run(self._statements.text("read_payload"), {"id": grant.id})
        return rows[0]["body"] if rows else None

    async def _insist(
        self, name: str, grant: Grant, values: Mapping[str, Any], happened: Sequence[str], *, in_doubt: bool = False
    ) -> Ours:
        """Run a guarded write until we know what became of it.

        After a lost reply it is never just repeated: we read our own grant first. Zero rows at the first try mean that the
        job is not ours any more.
        """
        guard = {"id": grant.id, "version": grant.version, "worker": self._settings.worker}
        until = time.monotonic() + max(LONGEST_INSISTENCE_SECONDS, self._settings.deadline_seconds * 2)
        wait_seconds = 0.05
        while True:
            try:
                if in_doubt:
                    verdict = await self._what_happened(guard, happened)
                    if verdict is not None:
                        return verdict
                rows = await self._sessions.run(self._statements.text(name), {**values, **guard})
            except Unknown as error:
                in_doubt = True
                log.warning("job=%d %s unknown=%s", grant.id, name, error)
            except NothingHappened as error:
                log.info("job=%d %s nothing_happened=%s", grant.id, name, error)
            else:
                if rows:
                    return Ours.WON
                if not in_doubt:
                    return Ours.LOST
                # Our own first write may have arrived between the look and the repeat.
                return await self._what_happened(guard, happened) or Ours.LOST
            if time.monotonic() > until:
                return Ours.UNKNOWN
            await asyncio.sleep(random.uniform(wait_seconds / 2, wait_seconds))
            wait_seconds = min(wait_seconds * 2, 2.0)

    async def _what_happened(self, guard: Mapping[str, Any], happened: Sequence[str]) -> Ours | None:
        """None: the grant is still ours and open, so the write did not happen."""
        rows = await self._sessions.run(self._statements.text("read_own"), guard)
        if not rows:
            return Ours.LOST
        state = rows[0]["state"]
        if state == "running":
            return None
        return Ours.WON if state in happened else Ours.LOST
