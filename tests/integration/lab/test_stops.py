"""Where a worker stands that is stopped inside the server: in the statement that was asked for, by the server's word."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.contracts.point import Point
from harness.history.events import Attempted, Moved
from harness.history.facts.barriers import released_together
from harness.history.facts.rescues import stood_in_a_rescue
from harness.history.recorder import Recorder
from harness.history.story import Story
from harness.lab.lab import Lab
from harness.lab.takeover import statements_that_take_over
from harness.postgres.cluster import Cluster
from harness.postgres.truth import SNAPSHOT_GATE
from harness.processes.watchdog import Watchdog
from harness.run.probe import probe
from harness.run.provision import open_site
from harness.run.subject_file import load_subject, reference_queue_folder
from harness.wire.statements import StatementBook

SUBJECTS = Path(harness.__file__).parent / "subjects"
Play = Callable[[Lab], Coroutine[Any, Any, None]]
Told = Callable[..., Story]


@pytest.fixture
def told(cluster: Cluster, watchdog: Watchdog, tmp_path: Path) -> Told:
    """``told(play)`` plays on a queue, by default the reference queue, whose worker rescues before it claims; its story.

    ``blank``: nothing is known of any statement.
    """

    async def run(play: Play, subject: Path | None, *, blank: bool) -> Story:
        with Recorder(tmp_path / "history.jsonl") as recorder:
            site = await open_site(load_subject(subject or reference_queue_folder()), cluster, watchdog, tmp_path)
            try:
                probed = await probe(site, recorder.play("probe:1"), 1)
                book = StatementBook() if blank else probed.book
                once = recorder.play("once:1")
                async with site.ground("once:1", book, probed.learned) as ground, Lab(ground, once) as lab:
                    await play(lab)
                return Story.of(once.entries)
            finally:
                await cluster.drop_database("template")

    return lambda play, subject=None, blank=False: asyncio.run(run(play, subject, blank=blank))


def test_a_worker_that_rescues_first_stands_in_its_claim(told: Told) -> None:
    async def play(lab: Lab) -> None:
        await lab.enqueue(1)
        worker = lab.worker(stops_at=Point.SNAPSHOT)
        await worker.start()
        stood = await worker.reached(Point.SNAPSHOT)
        assert stood.point is Point.SNAPSHOT
        assert stood.statement in lab.ground.book.learned()["claim"]
        assert not any(isinstance(entry.what, Moved) and entry.what.worker for entry in lab.recorder.entries)
        await worker.release(Point.SNAPSHOT)
        assert await lab.drained()

    told(play)


async def barrier_of_two(lab: Lab) -> None:
    await lab.enqueue(2)
    workers = [lab.worker(stops_at=Point.SNAPSHOT) for _ in range(2)]
    for worker in workers:
        await worker.start()
    await lab.all_reached(Point.SNAPSHOT, workers, within_seconds=20)
    await lab.release_together(Point.SNAPSHOT, workers)
    assert await lab.drained()


def test_two_of_them_stand_there_in_one_look_and_their_claims_go_on_together(told: Told) -> None:
    assert len(released_together(2).evidence(told(barrier_of_two))) == 2


def test_where_no_statement_is_known_to_claim_nobody_says_that_they_stood_in_their_claims(told: Told) -> None:
    assert released_together(2).evidence(told(barrier_of_two, blank=True)) == ()


def test_it_stands_in_its_takeover_where_that_is_asked_for(told: Told) -> None:
    async def play(lab: Lab) -> None:
        takeovers = await statements_that_take_over(lab)
        assert not takeovers.keys() & set(lab.ground.book.learned()["claim"])
        await lab.enqueue(1)
        worker = lab.worker()
        await worker.stop_at(Point.SNAPSHOT, statements=takeovers)
        await worker.start()
        stood = await worker.reached(Point.SNAPSHOT)
        assert stood.statement in takeovers
        await worker.release(Point.SNAPSHOT)
        assert await lab.drained()

    assert len(stood_in_a_rescue.evidence(told(play))) == 2


def test_one_that_is_let_go_before_it_came_is_never_parked(told: Told) -> None:
    async def play(lab: Lab) -> None:
        worker = lab.worker()
        await worker.stop_at(Point.SNAPSHOT)
        await worker.release(Point.SNAPSHOT)
        await worker.start()
        await lab.enqueue(1)
        assert await lab.drained()

    told(play)


def test_one_whose_look_says_no_claim_has_looked_after_two_polls(told: Told) -> None:
    async def play(lab: Lab) -> None:
        worker = await lab.worker().start()
        assert "claim" in lab.ground.learned
        assert await lab.has_looked(worker, within_seconds=30)

    story = told(play, subject=SUBJECTS / "sound" / "select_then_update_in_one_transaction")
    assert not any(isinstance(entry.what, Attempted) for entry in story.entries)


def test_where_one_message_rescues_and_claims_a_worker_stands_in_its_claim(told: Told) -> None:
    async def play(lab: Lab) -> None:
        await lab.enqueue(1)
        worker = lab.worker(stops_at=Point.SNAPSHOT)
        await worker.start()
        await worker.reached(Point.SNAPSHOT)
        (parked,) = await lab.gates.parked(SNAPSHOT_GATE, [worker.number])
        assert parked.place == 2  # the first write of its function is the rescue
        await worker.release(Point.SNAPSHOT)
        assert await lab.drained()

    told(play, subject=SUBJECTS / "broken" / "unlocked_look_behind_its_rescue")
