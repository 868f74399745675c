"""One grant from its first step to its written result.

The handler's call may be cancelled when the grant is lost; a write to the database never is, since its result would be
unknown. Every write is guarded, and the first one that finds the grant gone ends the attempt without a trace.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from reference_queue.decisions import Answer, Step, first_step, step_after_asking
from reference_queue.failures import DEAD, RETRY, Failure, classify
from reference_queue.grants import Grant, Phase
from reference_queue.handlers import Handler, Job
from reference_queue.held import Held
from reference_queue.metrics import Metrics
from reference_queue.protocol import Ours, Protocol

USED_UP = Failure(DEAD, "attempts_used_up", "All attempts failed, and the effect does not exist outside.")
NOT_TELLING = Failure(RETRY, "outside_undecided", "The other side could not yet tell what became of the call.")
FOR_A_PERSON = Failure(
    "reconcile", "result_unknown", "A call may have happened, and nobody can be asked; decide by hand."
)

log = logging.getLogger("reference_queue")

T = TypeVar("T")


class Abandoned(Exception):
    """The grant is not ours any more: write nothing."""


class Attempt:
    """``run`` once. ``abandon`` and ``give_back_if_not_started`` may come from outside at any time."""

    def __init__(self, grant: Grant, handler: Handler, protocol: Protocol, held: Held, metrics: Metrics) -> None:
        self.grant = grant
        self._handler = handler
        self._protocol = protocol
        self._held = held
        self._metrics = metrics
        self._abandoned = False
        self._give_back = False
        self._outside: asyncio.Task[Any] | None = None

    def abandon(self) -> None:
        self._abandoned = True
        if self._outside is not None:
            self._outside.cancel()

    def give_back_if_not_started(self) -> None:
        self._give_back = True

    async def run(self) -> None:
        try:
            await self._run()
        except Abandoned:
            log.info("job=%d version=%d abandoned", self.grant.id, self.grant.version)

    async def _run(self) -> None:
        step = first_step(self.grant.phase, self._handler.recovery, may_call=self.grant.may_call)
        absent = False
        if self._give_back:
            await self._protocol.release([self.grant], "worker shut down before it started")
            return
        if step is Step.ASK:
            answer = await self._ask()
            absent = answer is Answer.ABSENT
            step = step_after_asking(answer, may_call=self.grant.may_call)
        if step is Step.CALL:
            await self._call()
        elif step is Step.COMPLETE:
            self._heed(await self._protocol.complete(self.grant, self.grant.remote_id, "completed after recovery"))
        elif step is Step.DEAD:
            self._heed(await self._protocol.fail(self.grant, USED_UP, absent=absent))
        elif step is Step.RECONCILE:
            self._heed(await self._protocol.fail(self.grant, FOR_A_PERSON))
        else:
            self._heed(await self._protocol.fail(self.grant, NOT_TELLING))

    async def _call(self) -> None:
        self._heed(await self._protocol.mark_calling(self.grant))
        # The database said yes at that moment; we may have been asleep since. A grant that is surely over makes no call.
        if self._abandoned or time.monotonic() >= self._held.deadline(self.grant):
            raise Abandoned
        try:
            done = await self._go_outside(self._handler.call(self._job()))
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is classified, never let through
            failure = classify(error, self._handler.reasons)
            self._metrics.add("failures_total", label=failure.error_class)
            log.info("job=%d failed class=%s code=%s", self.grant.id, failure.error_class, failure.code)
            await self._failed(failure)
        else:
            self._heed(await self._protocol.complete(self.grant, done.remote_id, "completed"))
            self._metrics.add("completed_jobs_total")

    async def _failed(self, failure: Failure) -> None:
        """The last attempt failed without saying whether it had an effect: ask before it is decided."""
        if (
            failure.outcome == RETRY
            and self.grant.attempts >= self.grant.max_attempts
            and self._handler.ask is not None
        ):
            answer = await self._ask()
            if answer is Answer.APPLIED:
                self._heed(
                    await self._protocol.complete(self.grant, None, "completed; the outside says it was applied")
                )
                return
            self._heed(await self._protocol.fail(self.grant, failure, absent=answer is Answer.ABSENT))
            return
        self._heed(await self._protocol.fail(self.grant, failure))

    async def _ask(self) -> Answer:
        assert self._handler.ask is not None
        try:
            return await self._go_outside(self._handler.ask(self._job()))
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - as above; not being able to ask is an answer
            log.info("job=%d asking failed class=%s", self.grant.id, classify(error, {}).error_class)
            return Answer.UNREACHABLE

    async def _go_outside(self, call: Coroutine[Any, Any, T]) -> T:
        """Run handler code in a task of its own, which ``abandon`` cancels."""
        task = asyncio.create_task(call)
        self._outside = task
        try:
            await asyncio.wait([task])
        finally:
            self._outside = None
            task.cancel()
        if self._abandoned or task.cancelled():
            raise Abandoned
        return task.result()

    def _job(self) -> Job:
        async def record(phase: str, remote_id: str | None) -> None:
            self._heed(await self._protocol.record_result(self.grant, Phase(phase), remote_id))

        return Job(self.grant, lambda: self._protocol.payload(self.grant), record)

    def _heed(self, ours: Ours) -> None:
        if ours is not Ours.WON:
            log.warning("job=%d version=%d write=%s", self.grant.id, self.grant.version, ours)
            raise Abandoned
