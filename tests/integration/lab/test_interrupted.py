"""Ctrl-C around a restart of the server by our own fault: the play is closed at once, whatever state the server is in."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.contracts.fault import Fault
from harness.contracts.scenario import scenario
from harness.faults.server_restarted import server_restarted_fast, server_restarted_immediate
from harness.faults.server_slow_start import server_slow_start
from harness.history.recorder import Recorder
from harness.invariants.no_lost_job import no_lost_job
from harness.lab.lab import Lab
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog
from harness.run.play import play_once
from harness.run.provision import open_site
from harness.run.subject_file import load_subject, reference_queue_folder
from harness.wire.statements import StatementBook

CLOSED_SECONDS = 15.0
MOMENTS = ("as it goes down", "when it is down", "while it is down", "as it comes up", "when it is up", "afterwards")


class Interrupted:
    """Cancels the run at one moment of the server's restart, once."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.at: float | None = None
        self.run: asyncio.Task[Any]

    def reached(self, moment: str) -> None:
        """Cancel when that is the moment: at once, or as soon as what is called next first waits."""
        if moment == self.moment and self.at is None:
            self.at = time.monotonic()
            asyncio.get_running_loop().call_soon(self.run.cancel)


def watched(cluster: Cluster, interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(name: str, before: str, after: str) -> None:
        deed: Callable[..., Any] = getattr(cluster, name)

        async def done(*given: Any) -> None:
            interrupted.reached(before)
            await deed(*given)
            interrupted.reached(after)

        monkeypatch.setattr(cluster, name, done)

    around("stop", MOMENTS[0], MOMENTS[1])
    around("start", MOMENTS[3], MOMENTS[4])
    around("start_slowly", MOMENTS[3], MOMENTS[4])


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(server_restarted_fast, id="restarted"),
        pytest.param(server_restarted_immediate, id="stopped at once", marks=pytest.mark.slow),
        pytest.param(server_slow_start, id="slow to start", marks=pytest.mark.slow),
    ],
)
def test_a_play_is_closed_at_once(
    watchdog: Watchdog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault[Any], moment: str
) -> None:
    interrupted = Interrupted(moment)
    troubles: list[dict[str, Any]] = []

    @scenario(serves=["V10"], must_hold=[no_lost_job], must_happen=[], hurts="server", deadline_seconds=60)
    async def restarts(lab: Lab) -> None:
        """The server is restarted while a worker works.

        What happens
            The server goes down and comes back.

        Why it matters
            Somebody presses Ctrl-C meanwhile.

        What must hold
            Nothing: it is never judged.
        """
        await lab.worker().start()
        await lab.enqueue(3)
        async with lab.injured(fault):
            interrupted.reached("while it is down")
            await asyncio.sleep(0.2)
        interrupted.reached("afterwards")
        await lab.reconnect()
        await asyncio.sleep(60)

    async def run() -> None:
        folder = tmp_path / "server"
        folder.mkdir()
        with Recorder(tmp_path / "history.jsonl") as recorder:
            async with open_cluster(parse_server("embedded"), watchdog, folder) as cluster:
                subject = load_subject(reference_queue_folder())
                site = await open_site(subject, cluster, watchdog, tmp_path, exclusive=True)
                watched(cluster, interrupted, monkeypatch)
                await play_once(site, restarts, recorder.play("restarts:1"), StatementBook(), frozenset(), 1)

    async def interrupt() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        interrupted.run = asyncio.create_task(run())
        await asyncio.wait([interrupted.run], timeout=25)
        assert interrupted.run.done()

    asyncio.run(interrupt())
    assert interrupted.at is not None, "the moment never came"
    assert time.monotonic() - interrupted.at < CLOSED_SECONDS
    assert interrupted.run.cancelled(), interrupted.run.exception()
    assert troubles == []
