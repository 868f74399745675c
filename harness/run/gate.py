"""The main job: probe a subject, play the scenarios that apply, side by side, judge them, and make one document."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from harness.contracts.problem import BadInput
from harness.contracts.scenario import Scenario
from harness.contracts.subject import Subject
from harness.contracts.verdict import Verdict
from harness.document import Document, PlayDoc
from harness.history.recorder import Recorder
from harness.postgres.cluster import Cluster, open_cluster
from harness.postgres.options import ServerOption
from harness.processes.watchdog import Watchdog
from harness.run import compose
from harness.run.judge import judge
from harness.run.keep import HISTORY
from harness.run.play import Played, play_once
from harness.run.probe import Probed, probe
from harness.run.provision import Site, open_site
from harness.run.stage import cannot_stand, stage

SIDE_BY_SIDE = 6


@dataclass(frozen=True)
class GateOptions:
    """What a gate is asked to do. ``subject_argument`` is how the user named the subject, for the reproducing line."""

    subject: Subject
    subject_argument: str | None
    scenarios: Sequence[Scenario]
    server: ServerOption
    folder: Path
    command: str
    seed: int
    repeat: int = 1
    fail_fast: bool = False
    keep_going: bool = False
    keep: bool = False
    side_by_side: int = SIDE_BY_SIDE
    allow_existing: bool = False
    known: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listener:
    """Told of progress: a word about what is going on, and each play as it is judged."""

    doing: Callable[[str], None]
    played: Callable[[PlayDoc], None]


async def run_gate(options: GateOptions, listener: Listener) -> Document:
    """Run it. Raises BadInput, EnvironmentFailed or SubjectFailed when there is nothing to judge."""
    began = time.monotonic()
    started_at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    async with AsyncExitStack() as stack:
        watchdog = stack.enter_context(Watchdog())
        recorder = stack.enter_context(Recorder(options.folder / HISTORY))
        listener.doing(f"starting PostgreSQL ({options.server.shown()})")
        cluster = await stack.enter_async_context(
            open_cluster(options.server, watchdog, options.folder, allow_existing=options.allow_existing)
        )
        notes = [f"everything is kept; open it with: {cluster.keep()}"] if options.keep else []
        listener.doing(f"installing {options.subject.name}")
        site = await open_site(options.subject, cluster, watchdog, options.folder)
        listener.doing(f"probing {options.subject.name}")
        probed = await probe(site, recorder.play("probe:1"), options.seed)
        listener.doing(f"playing {len(options.scenarios)} scenario{'s' if len(options.scenarios) != 1 else ''}")
        plays = await _Gate(options, listener, site, recorder, probed).run()
        facts = compose.RunFacts(options.command, started_at, time.monotonic() - began, options.seed, tuple(notes))
        return compose.run_document(facts, options.subject, probed, cluster, plays, options.scenarios)


class _Gate:
    """The plays of one run: what applies, who runs beside whom, and when to stop."""

    def __init__(
        self, options: GateOptions, listener: Listener, site: Site, recorder: Recorder, probed: Probed
    ) -> None:
        self._options = options
        self._listener = listener
        self._site = site
        self._recorder = recorder
        self._probed = probed
        self._stopped: str | None = None
        self._documents: dict[tuple[str, int], PlayDoc] = {}

    async def run(self) -> list[PlayDoc]:
        """Every play's document, in the order of the scenarios."""
        places = asyncio.Semaphore(self._options.side_by_side if self._site.cluster.can_create_databases else 1)
        try:
            async with asyncio.TaskGroup() as group:
                for repeat in range(1, self._options.repeat + 1):
                    for scenario in self._options.scenarios:
                        group.create_task(self._place(places, scenario, repeat))
        except BaseExceptionGroup as errors:
            # The first is what went wrong; the others are the tasks that it took down.
            raise errors.exceptions[0] from None
        order = [
            (scenario.name, repeat)
            for repeat in range(1, self._options.repeat + 1)
            for scenario in self._options.scenarios
        ]
        return [self._documents[key] for key in order]

    async def _place(self, places: asyncio.Semaphore, scenario: Scenario, repeat: int) -> None:
        async with places:
            document = await self._play(scenario, repeat)
        self._documents[scenario.name, repeat] = document
        self._listener.played(document)

    def _reproduce(self, scenario: Scenario) -> str:
        return compose.reproduce_line(
            self._options.subject_argument, scenario.name, self._options.seed, self._options.server.shown()
        )

    async def _play(self, scenario: Scenario, repeat: int) -> PlayDoc:
        for need in scenario.needs:
            missing = need.missing(self._options.subject, self._probed.learned)
            if missing is not None:
                return compose.not_applicable(scenario, missing, reproduce=self._reproduce(scenario))
        missing = cannot_stand(scenario, self._site.cluster)
        if missing is not None:
            return compose.not_applicable(scenario, missing, reproduce=self._reproduce(scenario))
        if self._stopped is not None:
            return compose.not_played(scenario, f"not played: {self._stopped}", reproduce=self._reproduce(scenario))
        name = f"{scenario.name}:{repeat}"
        async with stage(self._site, scenario, self._options.server) as site:
            played = await play_once(
                site, scenario, self._recorder.play(name), self._probed.book, self._probed.learned, self._options.seed
            )
        return self._judge(scenario, repeat, played)

    def _judge(self, scenario: Scenario, repeat: int, played: Played) -> PlayDoc:
        document = compose.play_document(
            scenario,
            played.story,
            judge(played.story),
            repeat=repeat,
            seconds=played.seconds,
            reproduce=self._reproduce(scenario),
            known=self._options.known,
        )
        failed = document.verdict == Verdict.FAIL and any(finding.known is None for finding in document.findings)
        if failed and played.duplicate and not self._options.keep_going:
            self._stopped = f"a job was executed twice in {scenario.name}, which stops the run (--keep-going plays on)"
        if failed and self._options.fail_fast:
            self._stopped = f"{scenario.name} failed (--fail-fast)"
        return document


async def run_probe(
    subject: Subject, server: ServerOption, folder: Path, seed: int, *, allow_existing: bool = False
) -> tuple[Probed, str, str]:
    """Only the calm first run. Returns what it taught, and the server's version and source."""
    async with AsyncExitStack() as stack:
        watchdog = stack.enter_context(Watchdog())
        recorder = stack.enter_context(Recorder(folder / HISTORY))
        cluster: Cluster = await stack.enter_async_context(
            open_cluster(server, watchdog, folder, allow_existing=allow_existing)
        )
        site = await open_site(subject, cluster, watchdog, folder)
        return await probe(site, recorder.play("probe:1"), seed), cluster.version, cluster.source


def choose(scenarios: Mapping[str, Scenario], only: Sequence[str], skip: Sequence[str]) -> list[Scenario]:
    """The scenarios that ``--only`` and ``--skip`` leave: whole names, or parts of them, in a list or separated by commas.

    Raises BadInput for strangers, and for a word that is empty: it is a part of every name.
    """
    empty = [
        f"--{option} {said!r}: names no scenario; see: queueproof list"
        for option, given in (("only", only), ("skip", skip))
        for said in given
        if not _words([said])
    ]
    if empty:
        raise BadInput(*empty)
    only, skip = _words(only), _words(skip)
    mistakes = [
        f"--{option} {word!r}: no scenario has this in its name; see: queueproof list"
        for option, words in (("only", only), ("skip", skip))
        for word in words
        if not any(word in name for name in scenarios)
    ]
    if mistakes:
        raise BadInput(*mistakes)
    chosen = [
        scenario
        for name, scenario in scenarios.items()
        if (not only or any(word in name for word in only)) and not any(word in name for word in skip)
    ]
    if not chosen:
        raise BadInput("--only and --skip together leave no scenario; see: queueproof list")
    return chosen


def _words(given: Sequence[str]) -> list[str]:
    return [word.strip() for said in given for word in said.split(",") if word.strip()]
