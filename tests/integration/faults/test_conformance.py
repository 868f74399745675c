"""What every fault promises: it lands, heals, heals when interrupted, is bounded in time, and leaves the server reachable.

One lab for all of them, on a server of its own: whatever a fault leaves behind would break the ones after it, and after each
of them a job must run from enqueue to done.
"""

import asyncio
import dataclasses
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.contracts.fault import Fault, Inapplicable
from harness.faults import discover
from harness.faults.injury import Injury
from harness.faults.target import Target
from harness.history.events import FaultHealed, FaultLanded
from harness.history.recorder import Recorder
from harness.lab.lab import Lab
from harness.postgres.cluster import open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog
from harness.run.provision import open_site
from harness.run.subject_file import load_subject, reference_queue_folder
from harness.wire.statements import StatementBook

WORKERS = 2
END_SECONDS = 20.0


class Bench:
    """The lab that every fault is tried in, and the loop that it lives on."""

    def __init__(self, runner: asyncio.Runner, lab: Lab) -> None:
        self.lab = lab
        self.run: Callable[[Coroutine[Any, Any, Any]], Any] = runner.run

    async def mended(self) -> None:
        """A job runs from enqueue to done, on workers that all live, over a server that answers."""
        await self.lab.reconnect()
        for worker in self.lab.workers:
            await self.lab.eventually(lambda w=worker: w.running, within_seconds=10, reason="the worker to run")
        keys = await self.lab.enqueue(WORKERS)
        assert await self.lab.drained(keys, within_seconds=END_SECONDS), f"{keys} did not end"

    async def busy(self) -> None:
        """Jobs for the faults that need one to strike."""
        await self.lab.reconnect()
        await self.lab.enqueue(6)

    def told(self, since: int, kind: type[FaultLanded] | type[FaultHealed], fault: Fault[Target]) -> list[Any]:
        entries = self.lab.recorder.entries
        return [e.what for e in entries if e.n > since and isinstance(e.what, kind) and e.what.fault == fault.title]

    @property
    def last(self) -> int:
        return self.lab.recorder.entries[-1].n


@pytest.fixture(scope="module")
def bench(watchdog: Watchdog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = Path(os.path.relpath(tmp_path_factory.mktemp("faults")))  # as the command line makes it

    async def opened(stack: AsyncExitStack) -> Lab:
        recorder = stack.enter_context(Recorder(folder / "history.jsonl"))
        cluster = await stack.enter_async_context(
            open_cluster(parse_server("embedded"), watchdog, folder, clock=True, disk_mb=400)
        )
        queue = load_subject(reference_queue_folder())
        quick = dataclasses.replace(queue, lease_seconds=0.8, heartbeat_seconds=0.2, takeover_within_seconds=2.0)
        site = await open_site(quick, cluster, watchdog, folder, exclusive=True)
        ground = await stack.enter_async_context(site.ground("conformance:1", StatementBook(), frozenset()))
        lab = await stack.enter_async_context(Lab(ground, recorder.play("conformance:1")))
        lab.sink.service_seconds = 0.2  # a handler is busy long enough for a fault to find it so
        for _ in range(WORKERS):
            await lab.worker().start()
        return lab

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield Bench(runner, runner.run(opened(stack)))
        finally:
            runner.run(stack.aclose())


every_fault = pytest.mark.parametrize("fault", discover().values(), ids=list(discover()))


def applicable(bench: Bench, fault: Fault[Target]) -> Target:
    target = bench.lab.target()
    missing = fault.missing(target)
    if missing is not None:
        pytest.skip(missing)
    return target


async def begin(fault: Fault[Target], target: Target, **limits: float) -> Injury:
    try:
        return await Injury.begin(fault, target, **limits)
    except Inapplicable as reason:
        pytest.skip(str(reason))


@every_fault
def test_it_lands_and_heals(bench: Bench, fault: Fault[Target]) -> None:
    async def play() -> None:
        since = bench.last
        await bench.busy()
        injury = await begin(fault, applicable(bench, fault))
        (landed,) = bench.told(since, FaultLanded, fault)
        assert landed.evidence
        assert not bench.told(since, FaultHealed, fault)
        await injury.heal()
        assert injury.healed
        assert len(bench.told(since, FaultHealed, fault)) == 1
        await bench.mended()

    bench.run(play())


@every_fault
def test_it_heals_when_interrupted_and_by_itself(bench: Bench, fault: Fault[Target]) -> None:
    async def interrupted() -> None:
        target = applicable(bench, fault)
        landed = asyncio.Event()

        async def story() -> None:
            async with bench.lab.injured(fault):
                landed.set()
                await asyncio.Event().wait()

        since = bench.last
        await bench.busy()
        task = asyncio.ensure_future(story())
        waiting = asyncio.ensure_future(landed.wait())
        await asyncio.wait({task, waiting}, timeout=fault.lands_within_seconds, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and isinstance(task.exception(), Inapplicable):
            pytest.skip(str(task.exception()))
        assert landed.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(bench.told(since, FaultHealed, fault)) == 1
        since = bench.last
        await bench.busy()
        injury = await begin(fault, target, lasts_at_most_seconds=0.1)
        async with asyncio.timeout(fault.heals_within_seconds):
            while not injury.healed:
                await asyncio.sleep(0.01)
        await injury.heal()
        assert len(bench.told(since, FaultHealed, fault)) == 1
        await bench.mended()

    bench.run(interrupted())


def test_a_backend_is_ended_although_the_fault_before_ended_our_own_connections(bench: Bench) -> None:
    async def play() -> None:
        lab = bench.lab
        victim, striker = await lab.connect("victim"), await lab.connect("striker")
        await striker.execute("select pg_terminate_backend(%s)", (lab.view.connection.info.backend_pid,))
        assert await lab.end_backend(victim.info.backend_pid) == "harness"
        await bench.mended()

    bench.run(play())
