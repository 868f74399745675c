"""A fault at work: a task of its own injures, waits to be told to heal, and heals, whatever happens around it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from harness.contracts.fault import Fault, Inapplicable, Landed
from harness.contracts.problem import EnvironmentFailed
from harness.faults.target import Target
from harness.history.events import FaultHealed, FaultLanded
from harness.history.recorder import DeadlinePassed


class Injury:
    """One fault that has landed. Made by ``begin``; ``heal`` may be called more than once."""

    def __init__(self, fault: Fault[Target], target: Target, lasts_at_most_seconds: float) -> None:
        self.fault = fault
        self.landed: Landed
        self._target = target
        self._lasts_at_most_seconds = lasts_at_most_seconds
        self._has_landed = asyncio.Event()
        self._enough = asyncio.Event()
        self._keeper: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._keep())
        self._keeper.add_done_callback(_retrieved)

    @classmethod
    async def begin(
        cls, fault: Fault[Target], target: Target, *, lasts_at_most_seconds: float | None = None
    ) -> "Injury":
        """Inject it and return when it has landed.

        Raises DeadlinePassed when it did not land in its time, Inapplicable when it cannot; either way it has healed.
        """
        missing = fault.missing(target)
        if missing is not None:
            raise Inapplicable(missing)
        injury = cls(fault, target, lasts_at_most_seconds or fault.lasts_at_most_seconds)
        landing = asyncio.ensure_future(injury._has_landed.wait())
        try:
            await asyncio.wait(
                {landing, injury._keeper}, timeout=fault.lands_within_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):  # that it is not undone must not hide that we are cancelled
                await injury._give_up()
            raise
        finally:
            landing.cancel()
        if injury._has_landed.is_set():
            return injury
        await injury._give_up()
        raise DeadlinePassed(f"waited {fault.lands_within_seconds:g} s for the fault '{fault.title}' to land")

    @property
    def healed(self) -> bool:
        """Whether it is over."""
        return self._keeper.done()

    async def heal(self) -> None:
        """Heal it and return when that is done, also when we are cancelled meanwhile. Raises EnvironmentFailed if it will not."""
        self._enough.set()
        await self._over()
        if not self._keeper.done():
            raise EnvironmentFailed(
                f"the fault '{self.fault.title}' did not heal within {self.fault.heals_within_seconds:g} s"
            )
        error = None if self._keeper.cancelled() else self._keeper.exception()
        if error is not None:
            raise EnvironmentFailed(f"the fault '{self.fault.title}' did not heal: {error}") from error

    async def _keep(self) -> None:
        recorder, title = self._target.recorder, self.fault.title
        async with self.fault.injure(self._target) as self.landed:
            recorder.record(FaultLanded(title, self.landed.evidence, self.landed.worker, self.landed.key))
            self._has_landed.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lasts_at_most_seconds):
                    await self._enough.wait()
        recorder.record(FaultHealed(title, self.landed.worker))

    async def _give_up(self) -> None:
        """Undo what has not landed."""
        self._enough.set()
        if not self._has_landed.is_set():
            self._keeper.cancel()
        await self._over()
        if self._keeper.done() and not self._keeper.cancelled():
            error = self._keeper.exception()
            if error is not None:
                raise error

    async def _over(self) -> None:
        """Wait for its end, although we are cancelled, as long as it may take to heal; then it is not waited for."""
        try:
            await _undisturbed(self._keeper, self.fault.heals_within_seconds)
        finally:
            self._keeper.cancel()


@contextlib.asynccontextmanager
async def injected(
    fault: Fault[Target], target: Target, *, lasts_at_most_seconds: float | None = None
) -> AsyncIterator[Landed]:
    """The fault for the time of a block."""
    injury = await Injury.begin(fault, target, lasts_at_most_seconds=lasts_at_most_seconds)
    try:
        yield injury.landed
    finally:
        await injury.heal()


def _retrieved(keeper: "asyncio.Task[None]") -> None:
    """Its error is for whoever heals; when that one was cancelled or has given up, nobody asks for it."""
    if not keeper.cancelled():
        keeper.exception()


async def _undisturbed(task: "asyncio.Task[None]", within_seconds: float) -> None:
    """Wait for a task although we are cancelled, then be cancelled."""
    deadline = asyncio.get_running_loop().time() + within_seconds
    cancelled = False
    while not task.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.wait([task], timeout=left)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
