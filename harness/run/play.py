"""Plays one scenario: opens its ground and its lab, watches for a duplicate, closes everything, and says how it ended."""

import asyncio
import time
from dataclasses import dataclass

from harness.contracts.problem import BadInput, EnvironmentFailed, SubjectFailed
from harness.contracts.scenario import Scenario
from harness.history.events import Began, Ended, Entry, Saw
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.history.story import Story
from harness.history.subject_facts import facts_of
from harness.invariants.no_double_execution import is_unexcused_duplicate
from harness.lab.lab import Lab
from harness.run.provision import Site
from harness.wire.statements import StatementBook

DUPLICATE = "unexcused duplicate"


@dataclass(frozen=True)
class Played:
    """One play that is over; its story has everything that was recorded, the end included."""

    name: str
    story: Story
    seconds: float
    duplicate: bool


async def play_once(
    site: Site,
    scenario: Scenario,
    recorder: PlayRecorder,
    book: StatementBook,
    learned: frozenset[str],
    seed: int,
) -> Played:
    """Play it. Whatever goes wrong is recorded as the play's trouble; only bad input and a full disk are raised."""
    began = time.monotonic()
    story = Story(recorder.name)
    duplicate = asyncio.Event()

    def follow(entry: Entry) -> None:
        story.add(entry)
        if is_unexcused_duplicate(story, entry) is not None:
            duplicate.set()

    recorder.subscribe(follow)
    recorder.record(
        Began(
            scenario=scenario.name,
            subject=facts_of(site.subject),
            must_hold=tuple(invariant.name for invariant in scenario.must_hold),
            must_happen=tuple(fact.sentence for fact in scenario.must_happen),
            excuses=scenario.excuses,
            seed=seed,
        )
    )
    ended = await _guarded(site, scenario, recorder, book, learned, duplicate)
    recorder.record(ended)
    return Played(recorder.name, story, time.monotonic() - began, duplicate.is_set())


async def _guarded(
    site: Site,
    scenario: Scenario,
    recorder: PlayRecorder,
    book: StatementBook,
    learned: frozenset[str],
    duplicate: asyncio.Event,
) -> Ended:
    try:
        async with site.ground(recorder.name, book, learned) as ground:
            lab = Lab(ground, recorder)
            async with lab:
                return await _tell(scenario, lab, duplicate)
    except DeadlinePassed as error:
        return Ended(str(error), "")
    except SubjectFailed as error:
        return Ended(str(error), "subject")
    except (BadInput, EnvironmentFailed):
        raise
    except Exception as error:  # noqa: BLE001  whatever the harness stumbles over is its own trouble, never the subject's
        return Ended(f"{type(error).__name__}: {error}", "harness")


async def _tell(scenario: Scenario, lab: Lab, duplicate: asyncio.Event) -> Ended:
    story = asyncio.ensure_future(scenario.play(lab))
    alarm = asyncio.ensure_future(duplicate.wait())
    try:
        done, _ = await asyncio.wait(
            {story, alarm}, timeout=scenario.deadline_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if lab.watch.trouble is not None:
            return Ended(f"truth could not be followed: {lab.watch.trouble}", "harness")
        if story in done:
            try:
                await story
            except DeadlinePassed as error:
                return Ended(f"{error}{_workers_told(lab)}", "")
            except SubjectFailed as error:
                return Ended(str(error), "subject")
            return Ended()
        if alarm in done:
            lab.recorder.record(Saw(DUPLICATE, "the play was stopped at the second execution"))
            return Ended("stopped at once: a job was executed again without an excuse", "subject")
        return Ended(f"the scenario did not end within {scenario.deadline_seconds:g} s{_workers_told(lab)}", "")
    finally:
        for task in (story, alarm):
            task.cancel()
        await asyncio.gather(story, alarm, return_exceptions=True)


def _workers_told(lab: Lab) -> str:
    """What became of workers that are gone, as far as it may explain why something did not happen."""
    gone = [worker for worker in lab.workers if worker.incarnation and not worker.running and not worker.was_killed]
    return "".join(f"; worker {worker.number} has exited, its last output:\n{worker.tail()}" for worker in gone)
