"""The exploration of one subject: its cases from the smallest on, within a budget, told with exactly what was covered."""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.contracts.problem import BadInput
from harness.contracts.subject import Subject
from harness.contracts.verdict import Verdict
from harness.explore import spec
from harness.explore.case import (
    LONGEST_LEASE_SECONDS,
    THE_END_OF_A_LEASE,
    Case,
    Played,
    leases_can_end,
    why_leases_cannot_end,
    why_no_lease_ends,
)
from harness.explore.counting import multinomial
from harness.explore.sampling import Chance, Sampler
from harness.explore.schedule import Kind, Schedule, read, told
from harness.explore.shrink import Shrinker, follow
from harness.explore.telling import story
from harness.explore.tree import Explorer, Ran, Tally
from harness.explore.workers import WorkerStage
from harness.history.recorder import Recorder
from harness.lab.ground import Ground
from harness.postgres.cluster import open_cluster
from harness.postgres.options import ServerOption
from harness.processes.watchdog import Watchdog
from harness.run.keep import HISTORY
from harness.run.provision import open_site
from harness.wire.statements import StatementBook

EXHAUSTIVE_SHARE = 0.6
SHRINK_SECONDS = 10.0
SHORTEST_LEASE_SECONDS = 0.6
RUNS_PER_LEASE = 20
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|h|)")
_UNITS = {"ms": 0.001, "s": 1, "": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Options:
    """What an exploration is asked to do. Without ``cases`` the usual ones, the smallest first."""

    budget_seconds: float = 60.0
    seed: int = 0
    cases: tuple[Case, ...] = ()
    reduce: bool = True
    in_order: float = EXHAUSTIVE_SHARE  # of the budget; what is left is for samples
    replay: Schedule = ()
    jobs: int = 1  # of a replay


@dataclass(frozen=True)
class Violation:
    """A counterexample, shrunk."""

    invariants: tuple[str, ...]
    schedule: str
    found_as: str
    workers: int
    jobs: int
    moves: int
    sentences: tuple[str, ...]
    story: tuple[str, ...]
    replay: str
    spec: str = ""
    why_no_spec: str = ""
    entries: tuple[object, ...] = field(default=(), compare=False, repr=False)


@dataclass
class Explored:
    """One case and what was covered of it."""

    case: Case
    tally: Tally
    sampled: Tally | None = None
    chance: Chance | None = None
    violation: Violation | None = None
    seconds: float = 0.0
    violated_after_seconds: float | None = None

    @property
    def estimate(self) -> int:
        """About how many interleavings there are: as if each thread always made as many moves as it was seen to make."""
        lengths = dict(self.tally.lengths)
        for thread, length in (self.sampled.lengths if self.sampled is not None else {}).items():
            lengths[thread] = max(length, lengths.get(thread, 0))
        return multinomial(list(lengths.values()))

    def coverage(self) -> str:
        """What was run, in one sentence."""
        tally = self.tally
        broken = "1 violation" if self.violation is not None else "0 violations"
        if tally.complete:
            covered = f"{tally.interleavings:,} of {tally.interleavings:,} interleavings, {tally.runs:,} after reduction, {broken}"
        elif self.sampled is not None and self.chance is not None:
            chance = self.chance
            covered = (
                f"{tally.interleavings:,} interleavings in order ({tally.runs:,} after reduction), then sampled"
                f" {self.sampled.runs:,} ({self.sampled.interleavings:,} different) of about {_large(self.estimate)}, {broken};"
                f" a violation of depth {chance.depth} is found by these samples with probability at least {chance.overall:.2g}"
            )
        else:
            covered = f"{tally.interleavings:,} of about {_large(self.estimate)} interleavings ({tally.runs:,} after reduction), {broken}"
        if tally.given_up:
            covered += f"; {tally.given_up} branches were left, because the same moves led elsewhere each time"
        if tally.undecided:
            covered += f"; {tally.undecided} runs could not be judged: {tally.why_undecided}"
        return covered

    @property
    def verdict(self) -> Verdict:
        if self.violation is not None:
            return Verdict.FAIL
        runs = self.tally.runs + (self.sampled.runs if self.sampled else 0)
        undecided = self.tally.undecided + (self.sampled.undecided if self.sampled else 0)
        return Verdict.INCONCLUSIVE if runs == undecided or self.tally.given_up else Verdict.PASS


@dataclass(frozen=True)
class Report:
    """All cases of one exploration."""

    subject: str
    server: str
    explored: tuple[Explored, ...]
    left_out: tuple[str, ...]
    seconds: float
    seed: int
    replayed: Violation | None = None
    replayed_schedule: str = ""

    @property
    def counterexample(self) -> Violation | None:
        """What to show: the schedule that was replayed, or the violation that was found."""
        return self.replayed or next((each.violation for each in self.explored if each.violation), None)

    @property
    def verdict(self) -> Verdict:
        if self.replayed_schedule:
            return Verdict.FAIL if self.replayed is not None and self.replayed.invariants else Verdict.PASS
        return Verdict.worst(each.verdict for each in self.explored)


def usual_cases(subject: Subject, *, leases_end: bool) -> tuple[Case, ...]:
    """Two workers and one job; two jobs; one job whose lease ends once, if its lease can be ended by a write."""
    calm = (Case(), Case(jobs=2))
    return (calm[0], Case(expiries=1, polls=0), calm[1]) if leases_end and subject.lease_seconds else calm


class Exploration:
    """``run`` on a ground of its own: a database with the subject in it that nobody else uses."""

    def __init__(self, ground: Ground, recorder: Recorder, options: Options, argument: str | None = None) -> None:
        self._ground = ground
        self._recorder = recorder
        self._options = options
        self._argument = argument
        self._run_seconds = LONGEST_LEASE_SECONDS / RUNS_PER_LEASE
        self._left_out: dict[str, None] = {}

    async def run(self, doing: Callable[[str], None]) -> tuple[Explored, ...]:
        """Each case in its turn, until one is violated or the time is up."""
        explored: list[Explored] = []
        deadline = time.monotonic() + self._options.budget_seconds
        subject = self._ground.subject
        cases = self._options.cases or usual_cases(subject, leases_end=leases_can_end(subject))
        why_not = why_no_lease_ends(subject)
        if not self._options.cases and why_not is not None:
            self._left_out[f"{THE_END_OF_A_LEASE}, because {why_not}"] = None
        for number, case in enumerate(cases):
            left = deadline - time.monotonic()
            if left <= 0:
                self._left_out[f"{case.told()}: not run, the budget was used up"] = None
                continue
            share = left / (len(cases) - number)
            doing(f"exploring {case.told()}")
            each = await self._explore(case, share)
            explored.append(each)
            doing(f"{case.told()}: {each.coverage()}")
            if each.violation is not None:
                break
        return tuple(explored)

    async def replay(self, schedule: Schedule) -> Violation:
        """Follow one schedule, strictly. A violation without invariants means that it held."""
        count = {kind: sum(1 for move in schedule if move.kind is kind) for kind in Kind}
        case = Case(
            workers=max([move.worker for move in schedule] + [1]),
            jobs=max([self._options.jobs, *(move.number for move in schedule if not move.worker)]),
            expiries=count[Kind.EXPIRE],
            kills=count[Kind.KILL],
            severs=count[Kind.SEVER],
            polls=len(schedule),
        )
        async with WorkerStage(self._ground, self._recorder, case, seed=self._options.seed) as stage:
            made, ending = await follow(stage, schedule, strict=True)
            return self._violation(stage, Ran(made, ending, 1), told(schedule))

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(self._left_out)

    async def _explore(self, case: Case, budget_seconds: float) -> Explored:
        began = time.monotonic()
        if case.expiries:
            lease = min(max(self._run_seconds * RUNS_PER_LEASE, SHORTEST_LEASE_SECONDS), LONGEST_LEASE_SECONDS)
            case = replace(case, lease_seconds=lease)
        async with WorkerStage(self._ground, self._recorder, case, seed=self._options.seed) as stage:
            if case.expiries and not stage.leases_end:
                raise BadInput(f"the lease cannot be ended by a write: {why_leases_cannot_end(stage.subject)}")
            started = time.monotonic()
            broken: list[Ran] = []
            broken_at: list[float] = []

            def ran(done: Ran) -> bool:
                if done.ending.findings:
                    broken.append(done)
                    broken_at.append(time.monotonic())
                return not broken

            explorer = Explorer(stage, reduce=self._options.reduce)
            explored = Explored(case, explorer.tally)
            end = began + budget_seconds
            in_order = began + budget_seconds * self._options.in_order
            await explorer.run(ran, lambda: time.monotonic() < in_order)
            if not explorer.tally.complete and not broken and not explorer.tally.given_up:
                sampler = Sampler(stage, self._options.seed, moves=explorer.tally.longest)
                explored.sampled = await sampler.run(ran, lambda: time.monotonic() < end)
                threads = max(len(explorer.tally.lengths), 1)
                explored.chance = Chance(3, threads, max(sampler.tally.longest, 1), sampler.tally.runs)
            runs = max(explorer.tally.runs + explorer.tally.redundant, 1)
            self._run_seconds = (time.monotonic() - started) / runs
            for sentence in stage.left_out:
                self._left_out[sentence] = None
            if broken:
                explored.violated_after_seconds = broken_at[0] - began
                shrinker = Shrinker(stage, within_seconds=SHRINK_SECONDS)
                smallest = await shrinker.shrink(broken[0])
                explored.violation = self._violation(stage, smallest, told(broken[0].schedule))
        explored.seconds = time.monotonic() - began
        return explored

    def _violation(self, stage: WorkerStage, ran: Ran, found_as: str) -> Violation:
        played = ran.ending.detail
        assert isinstance(played, Played)
        text, why = "", ""
        try:
            text = spec.write(stage.subject, played.made, stage.ids(), stage.tables)
        except spec.NotPlainSql as reason:
            why = str(reason)
        schedule = told(ran.schedule)
        jobs = f" --jobs {stage.jobs}" if stage.jobs > 1 else ""
        return Violation(
            invariants=ran.ending.findings,
            schedule=schedule,
            found_as=found_as,
            workers=len({move.worker for move in ran.schedule if move.worker}),
            jobs=stage.jobs,
            moves=len(ran.schedule),
            sentences=tuple(f"{finding.invariant}: {finding.sentence}" for finding in played.judged.findings),
            story=tuple(story(played)),
            replay=f"queueproof explore{f' {self._argument}' if self._argument else ''}{jobs} --replay {schedule}",
            spec=text,
            why_no_spec=why,
            entries=played.entries,
        )


async def run_exploration(
    subject: Subject,
    argument: str | None,
    server: ServerOption,
    folder: Path,
    options: Options,
    doing: Callable[[str], None],
    *,
    allow_existing: bool = False,
) -> Report:
    """Open a server, install the subject, explore. Raises BadInput, EnvironmentFailed or SubjectFailed."""
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        watchdog = stack.enter_context(Watchdog())
        recorder = stack.enter_context(Recorder(folder / HISTORY))
        doing(f"starting PostgreSQL ({server.shown()})")
        cluster = await stack.enter_async_context(open_cluster(server, watchdog, folder, allow_existing=allow_existing))
        doing(f"installing {subject.name}")
        site = await open_site(subject, cluster, watchdog, folder)
        ground = await stack.enter_async_context(site.ground("explore:1", StatementBook(), frozenset()))
        exploration = Exploration(ground, recorder, options, argument)
        version = f"{cluster.version} ({cluster.source})"
        if options.replay:
            violation = await exploration.replay(options.replay)
            return Report(
                subject.name,
                version,
                (),
                exploration.left_out,
                time.monotonic() - began,
                options.seed,
                violation,
                told(options.replay),
            )
        explored = await exploration.run(doing)
        return Report(subject.name, version, explored, exploration.left_out, time.monotonic() - began, options.seed)


def _large(number: int) -> str:
    """756756 as people read it: 7.6 × 10^5."""
    if number < 100_000:
        return f"{number:,}"
    power = len(str(number)) - 1
    return f"{number / 10**power:.1f} × 10^{power}"


def options_of(asked: Mapping[str, int | None], budget: str, replay: str, seed: int) -> Options:
    """From the command line. Asking for anything of a case asks for that case alone. Raises BadInput."""
    named = {name: value for name, value in asked.items() if value is not None}
    found = _BUDGET.fullmatch(budget.strip())
    if found is None or float(found[1]) <= 0:
        raise BadInput(f"--budget {budget!r}: not a time above 0, such as 60s, 500ms or 5min")
    if replay and set(named) - {"jobs"}:
        raise BadInput(
            f"--replay says itself what happens; leave out {', '.join(f'--{n}' for n in named if n != 'jobs')}"
        )
    case = Case(**named)
    if named and "polls" not in named and (case.expiries or case.kills or case.severs):
        case = replace(case, polls=0)
    return Options(
        budget_seconds=float(found[1]) * _UNITS[found[2]],
        seed=seed,
        cases=(case,) if named else (),
        replay=read(replay) if replay else (),
        jobs=named.get("jobs", 1),
    )
