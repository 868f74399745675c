"""Drills: faults on demand under inflow, told live, and judged: nothing lost, nothing doubled, the backlog gone in its time."""

import asyncio
import random
import shlex
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.contracts.fault import Inapplicable
from harness.contracts.scenario import Scenario
from harness.contracts.subject import State, Subject
from harness.contracts.verdict import Verdict
from harness.document import Document, PlayDoc
from harness.faults import discover
from harness.history.facts.said import fault_landed
from harness.history.job import ENDED
from harness.history.recorder import DeadlinePassed, Recorder
from harness.history.story import Story
from harness.invariants.backlog_recovers import backlog_recovers
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.inflow import Inflow, fates_told
from harness.lab.lab import Lab
from harness.lab.worker import LabWorker
from harness.postgres.cluster import open_cluster
from harness.postgres.options import ServerOption
from harness.processes.watchdog import Watchdog
from harness.run import compose
from harness.run.drill_plan import COMPOSED, Faults, Plan, Step, planned, struck, thrown
from harness.run.judge import judge
from harness.run.keep import HISTORY
from harness.run.narrate import Narrator
from harness.run.play import play_once
from harness.run.probe import Probed, probe
from harness.run.provision import Site, open_site

WORKERS = 3
SLOTS = 2
BUDGET_SECONDS = 60.0
JOBS_PER_SECOND = 6.0
CALM_SECONDS = 1.0
SERVICE_SECONDS = 0.1
SPARE_SECONDS = 90.0
DISK_MB = 400
HOLDER_SECONDS = 2.0
_TOLD_EVERY_SECONDS = 1.0
_STRIKES_A_HOLDER = frozenset({"worker", "connection"})


@dataclass(frozen=True)
class DrillOptions:
    """What is drilled. Exactly one of ``names``, ``every`` and ``lasts_seconds`` (random) says which faults."""

    subject: Subject
    subject_argument: str | None
    server: ServerOption
    folder: Path
    command: str
    seed: int
    names: Sequence[str] = ()
    every: bool = False
    lasts_seconds: float | None = None
    hold_seconds: float | None = None
    budget_seconds: float = BUDGET_SECONDS
    jobs_per_second: float = JOBS_PER_SECOND
    workers: int = WORKERS
    fail_fast: bool = False
    allow_existing: bool = False
    known: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listener:
    """Told of progress: a word about what is going on, each moment of a drill, and each drill as it is judged."""

    doing: Callable[[str], None]
    moment: Callable[[str], None]
    played: Callable[[PlayDoc], None]


async def run_drills(options: DrillOptions, listener: Listener) -> Document:
    """Run them, one after the other, on a server that they have to themselves."""
    began = time.monotonic()
    started_at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    async with AsyncExitStack() as stack:
        watchdog = stack.enter_context(Watchdog())
        recorder = stack.enter_context(Recorder(options.folder / HISTORY))
        listener.doing(f"starting PostgreSQL ({options.server.shown()})")
        cluster = await stack.enter_async_context(
            open_cluster(
                options.server,
                watchdog,
                options.folder,
                allow_existing=options.allow_existing,
                clock=True,
                disk_mb=DISK_MB,
            )
        )
        listener.doing(f"installing {options.subject.name}")
        site = await open_site(options.subject, cluster, watchdog, options.folder, exclusive=True)
        listener.doing(f"probing {options.subject.name}")
        probed = await probe(site, recorder.play("probe:1"), options.seed)
        drills = _Drills(options, listener, site, recorder, probed)
        plays, scenarios = await drills.run()
        notes = [f"{play.scenario}: to play it again: {play.reproduce}" for play in plays if _broken(play)]
        # The line of a drill that held is cut on a terminal, and nobody may overlook this.
        notes += [f"{name}: {fates}" for name, fates in drills.fates.items()]
        facts = compose.RunFacts(options.command, started_at, time.monotonic() - began, options.seed, tuple(notes))
        return compose.run_document(facts, options.subject, probed, cluster, plays, scenarios)


def _broken(play: PlayDoc) -> bool:
    return play.verdict in {Verdict.FAIL, Verdict.INCONCLUSIVE}


class _Drills:
    def __init__(
        self,
        options: DrillOptions,
        listener: Listener,
        site: Site,
        recorder: Recorder,
        probed: Probed,
    ) -> None:
        self._options = options
        self._listener = listener
        self._site = site
        self._recorder = recorder
        self._probed = probed
        self._seen: dict[str, int] = {}
        self.fates: dict[str, str] = {}  # of plays in which jobs were given up: what became of all
        self._ended_at = time.monotonic() + (options.lasts_seconds or 0)

    async def run(self) -> tuple[list[PlayDoc], list[Scenario]]:
        plays: list[PlayDoc] = []
        scenarios: list[Scenario] = []
        for number, plan in enumerate(self._plans(), 1):
            scenario, document = await self._drill(number, plan)
            plays.append(document)
            scenarios.append(scenario)
            self._listener.played(document)
            if self._options.fail_fast and document.verdict == Verdict.FAIL:
                break
        return plays, scenarios

    def _plans(self) -> Iterator[Plan]:
        options, faults = self._options, discover()
        if options.lasts_seconds is not None:
            dice = random.Random(options.seed)
            while time.monotonic() < self._ended_at:
                yield thrown(faults, dice.randrange(1_000_000), options.workers)
        elif options.every:
            for names in (*((name,) for name in faults), *COMPOSED):
                yield self._planned(faults, names)
        else:
            yield self._planned(faults, options.names)

    def _planned(self, faults: Faults, names: Sequence[str]) -> Plan:
        options, lease_seconds = self._options, self._options.subject.lease_seconds
        return planned(faults, names, options.seed, options.workers, options.hold_seconds, lease_seconds=lease_seconds)

    def _repeat_of(self, plan: Plan) -> int:
        self._seen[plan.title] = self._seen.get(plan.title, 0) + 1
        return self._seen[plan.title]

    async def _drill(self, number: int, plan: Plan) -> tuple[Scenario, PlayDoc]:
        options = self._options
        name = f"{plan.title}:{number}"
        drill = _Drill(plan, options, self._listener)
        scenario = _scenario(plan, drill, options)
        self._listener.moment(f"{plan.title}: {plan.told()}, seed {plan.seed}")
        reproduce = _reproduce(plan, options)
        played = await play_once(
            self._site, scenario, self._recorder.play(name), self._probed.book, self._probed.learned, plan.seed
        )
        if drill.inapplicable is not None:
            return scenario, compose.not_applicable(scenario, drill.inapplicable, reproduce=reproduce)
        judged = judge(played.story)
        if fates := _fates(played.story):
            self.fates[name] = fates
            judged = replace(judged, reason=f"{judged.reason}; {fates}")
        return scenario, compose.play_document(
            scenario,
            played.story,
            judged,
            repeat=self._repeat_of(plan),
            seconds=played.seconds,
            reproduce=reproduce,
            known=options.known,
        )


def _fates(story: Story) -> str:
    """What became of the jobs, where some of them were given up: part of a drill's answer. "" where all that ended are done."""
    rows = [job.final_row() for job in story.jobs.values() if job.enqueued]
    ended = [row.state for row in rows if row is not None and row.state in ENDED - {State.DELETED}]
    if all(state == State.DONE for state in ended):
        return ""
    return f"of {len(rows)} jobs: {fates_told(ended)}"


class _Drill:
    """The story of one drill."""

    def __init__(self, plan: Plan, options: DrillOptions, listener: Listener) -> None:
        self.inapplicable: str | None = None
        self._plan = plan
        self._options = options
        self._listener = listener

    async def play(self, lab: Lab) -> None:
        lab.sink.service_seconds = SERVICE_SECONDS
        for _ in range(self._options.workers):
            await lab.worker(slots=SLOTS).start()
        inflow = Inflow(lab, self._options.jobs_per_second)
        narrator = Narrator(lab.recorder, self._listener.moment)
        async with inflow.flowing(), self._told(narrator, inflow):
            await inflow.settle_in(CALM_SECONDS)
            narrator.follow()
            try:
                await self._hurt(lab, inflow, narrator)
            except Inapplicable as reason:
                self.inapplicable = str(reason)
                return
            narrator.say("all healed; the backlog has to go within its budget")
            met = await inflow.recovered(self._options.budget_seconds)
            narrator.say(f"{'recovered' if met else 'NOT recovered'}: {inflow.told()}")
        narrator.say(f"no more jobs come; {inflow.refused} enqueues were refused during the outage")
        await lab.drained(inflow.acknowledged)
        narrator.say(f"the end: {inflow.told()}")
        narrator.stop()

    async def _hurt(self, lab: Lab, inflow: Inflow, narrator: Narrator) -> None:
        """Land the faults one after the other, hold them, and heal them in reverse."""
        hit: set[int] = set()
        async with AsyncExitStack() as stack:
            for step in self._plan.steps:
                await asyncio.sleep(step.after_seconds)
                first, whom = await self._struck(step, lab, inflow, hit)
                others = [worker for worker in lab.workers if worker is not first]
                narrator.say(f"injecting {step.fault.name}{whom}")
                await stack.enter_async_context(lab.injured(step.fault, first, *others))
            await asyncio.sleep(self._plan.hold_seconds)
            if all(step.fault.is_borne for step in self._plan.steps):
                met = await inflow.recovered(self._options.budget_seconds)
                narrator.say(f"{'goes on' if met else 'does NOT go on'} meanwhile: {inflow.told()}")
            narrator.say("healing")
        try:
            await lab.reconnect()
        except DeadlinePassed as error:
            raise DeadlinePassed(f"after the faults had healed: {error}") from error

    async def _struck(self, step: Step, lab: Lab, inflow: Inflow, hit: set[int]) -> tuple[LabWorker, str]:
        """Whom a fault strikes, and what to say of that; one that strikes a worker adds it to those that were ``hit``.

        Such a fault waits a moment for somebody who holds a job, and was not hit yet.
        """
        if step.fault.strikes not in _STRIKES_A_HOLDER:
            return struck(step, lab.workers), ""
        others = {worker.number for worker in lab.workers} - hit
        if others:
            await inflow.somebody_calls(others, HOLDER_SECONDS)
        busy = inflow.busy
        worker = struck(step, lab.workers, others & set(busy))
        hit.add(worker.number)
        doing = f"is in its call for job {busy[worker.number]!r}" if worker.number in busy else "is in no call"
        return worker, f"; worker {worker.number} {doing}"

    @asynccontextmanager
    async def _told(self, narrator: Narrator, inflow: Inflow) -> AsyncIterator[None]:
        """Say every second how the queue is."""

        async def tell() -> None:
            while True:
                await asyncio.sleep(_TOLD_EVERY_SECONDS)
                narrator.say(inflow.told())

        task = asyncio.get_running_loop().create_task(tell())
        try:
            yield
        finally:
            task.cancel()


def _scenario(plan: Plan, drill: _Drill, options: DrillOptions) -> Scenario:
    what = "\n".join(f"        {step.fault.name}: {step.fault.docstring.splitlines()[0]}" for step in plan.steps)
    return Scenario(
        name=plan.title,
        title=plan.title.replace("_", " "),
        docstring=(
            f"Under steady inflow: {', '.join(plan.names)}.\n\n    What happens\n{what}\n\n    Why it matters\n"
            "        Production delivers these failures without asking.\n\n    What must hold\n"
            "        Nothing is lost, no effect is doubled, and once healed the backlog and the age of its oldest job are"
            f" back to normal within {options.budget_seconds:g} s."
        ),
        play=drill.play,
        serves=("V10", "Q11"),
        must_hold=(backlog_recovers, no_lost_job, no_double_execution, effect_once, no_stale_write),
        must_happen=tuple(dict.fromkeys(fault_landed(step.fault.title) for step in plan.steps)),
        needs=(),
        hurts="server",
        record=None,
        deadline_seconds=options.budget_seconds * 2 + plan.hold_seconds + SPARE_SECONDS,
        excuses=tuple(name for step in plan.steps for name in step.fault.excuses),
    )


def _reproduce(plan: Plan, options: DrillOptions) -> str:
    parts = ["queueproof", "drill", *plan.names]
    if options.subject_argument is not None:
        parts.append(options.subject_argument)
    parts += ["--seed", str(plan.seed), "--hold", f"{plan.hold_seconds:g}s"]
    if options.budget_seconds != BUDGET_SECONDS:
        parts += ["--budget", f"{options.budget_seconds:g}s"]
    if options.jobs_per_second != JOBS_PER_SECOND:
        parts += ["--arrival", f"{options.jobs_per_second:g}/s"]
    if options.workers != WORKERS:
        parts += ["--workers", str(options.workers)]  # whom a seed strikes depends on it, too
    if options.server.shown() != "embedded":
        parts += ["--server", options.server.shown()]
    return shlex.join(parts)
