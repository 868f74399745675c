"""The load command: read what was typed, run it once or once per setting of a sweep, and make one document."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.problem import BadInput
from harness.contracts.subject import Subject
from harness.document import Document
from harness.load.compose import Loaded, conclude_run, load_document, save_trace
from harness.load.front import front_named
from harness.load.plan import LoadPlan, read_plan
from harness.load.run import Listener, LoadOptions, Progress, run_load
from harness.load.samplers import HostMetrics
from harness.load.sweep import Setting, compare, settings
from harness.postgres.options import ServerOption
from harness.run.compose import RunFacts

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """The command line, read as far as it can be without running anything."""

    words: Mapping[str, str | None]
    worker_env: Sequence[str]
    sweep: Sequence[str]
    front: str
    sink_host: str
    sink_port: int
    host_metrics: str | None
    durable: bool
    allow_existing: bool
    subject: Subject
    server: ServerOption
    seed: int
    command: str

    def check(self) -> None:
        """Raises BadInput with every mistake there is."""
        mistakes: list[str] = []
        for look in (self.plan, self.settings, self._others):
            try:
                look()
            except BadInput as bad:
                mistakes += [line for line in bad.mistakes if line not in mistakes]
        if mistakes:
            raise BadInput(*mistakes)

    def plan(self) -> LoadPlan:
        """Of the run, or of the first of a sweep."""
        plan = read_plan(**self.words)
        return dataclasses.replace(plan, worker_env=self._environment())

    def settings(self) -> tuple[Setting, ...]:
        """What a sweep varies; none: a single run."""
        return settings(self.sweep)

    def _others(self) -> None:
        front_named(self.front)
        if self.host_metrics is not None:
            HostMetrics(self.host_metrics)

    def _environment(self) -> dict[str, str]:
        found = {}
        for pair in self.worker_env:
            name, sign, value = pair.partition("=")
            if not sign or not name.isidentifier():
                raise BadInput(f'worker-env: "{pair}" is not NAME=VALUE')
            found[name] = value
        return found

    def options(self, plan: LoadPlan, folder: Path) -> LoadOptions:
        """For one run."""
        return LoadOptions(
            subject=self.subject,
            plan=plan,
            server=self.server,
            folder=folder,
            seed=self.seed,
            allow_existing=self.allow_existing,
            sink_host=self.sink_host,
            sink_port=self.sink_port,
            host_metrics=self.host_metrics,
            durable=self.durable,
            front=front_named(self.front, self.sink_host),
        )


async def carry_out(asked: Asked, folder: Path, say: Say) -> Document:
    """Run it and make its document; a sweep's document is that of its cheapest setting that meets the thresholds."""
    began, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z")
    found: list[tuple[Setting, Loaded]] = []
    for setting in asked.settings() or (Setting(()),):
        place = folder / setting.folder if setting.values else folder
        place.mkdir(exist_ok=True)
        if setting.values:
            say(f"  {setting.shown}")
        plan = setting.apply(asked.plan())
        run = await run_load(
            asked.options(plan, place), Listener(lambda what: say(f"  {what} ..."), lambda p: say(told(p)))
        )
        save_trace(run, place)
        found.append((setting, conclude_run(run)))
    facts = RunFacts(asked.command, started_at, time.monotonic() - began, asked.seed)
    if not asked.settings():
        return load_document(facts, asked.subject, found[0][1])
    return compare(facts, asked.subject, found)


def told(progress: Progress) -> str:
    """One line of progress."""
    return (
        f"  {progress.phase:9} {progress.at:7.1f} s  in {progress.arrivals_per_second:6.1f}/s  done"
        f" {progress.completions_per_second:6.1f}/s  backlog {progress.backlog:6}  oldest {progress.oldest_age_seconds:6.1f} s"
        f"  {progress.told}"
    ).rstrip()
